// Package partitions plays coordinators that share the partitions of a cell, as
// processes on one Redis and one NATS server: who comes late gets its half, who dies is
// followed in all that it led, and who counts otherwise does not start. Its tests are all
// it has.
package partitions
