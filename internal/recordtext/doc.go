// Package recordtext writes the record of a prefix as named fields of text, as mirrors
// outside the process keep it and people read it:
//
//	e                                the number of the epoch that wrote it last
//	w <rule>                         <seen> <held> <spent> <own>
//	m <rule> <instant>               how many tokens were spent then
//	b <seq> <began> <life> <holder>  <keys>|<lease> <lease> ...
//	p                                <since> <until> <by> <reason>
//	c <id>                           <n> <until> <unit>
//
// The field p is a pause, with who and why quoted, and c a charge that is remembered,
// without a unit where it is of calls.
// The field of a batch names its first lease, and has its keys, quoted, with blanks
// between. A lease is <seq>:<tokens>:<slots>, and :<unit>=<amount> for each further
// unit. An amount is granted,spent,returned,expires, or nothing if all is 0. Instants
// are nanoseconds, and all numbers are decimal but the life of the holder.
package recordtext
