// Package failover lets real coordinators, a real redis-server and real workers fail in
// every way that there is, one after the other, under full demand, and holds every call
// against the contract: not one may break it. It measures for how long nothing is granted
// meanwhile.
package failover
