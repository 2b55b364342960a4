// Package commitlog puts a commit log in front of a store, so that durable
// writes go at the pace of a disk that is written from front to back.
//
// A commit is decided against what the store and the log hold, appended to the
// log as one group, and durable with one sync. What the store behind does not
// have yet is kept in memory, from where it is read, and folded into the store
// in the background, sorted, in transactions of at most 5,000 keys. The newest
// state of a key is written there once, however often it changed meanwhile.
//
// # Segments
//
// The log is a few files of a fixed size, which are used in turn: while one is
// written, what another has is folded. A segment that is folded is overwritten,
// so that appending allocates nothing. Every group carries a checksum that
// begins with the numbers of its log and its segment: what is left of an
// earlier use passes for nothing else. When the fold falls behind, commits help
// with it: neither memory nor the disk grows.
//
// # After a crash
//
// Open reads the groups that are not folded and goes on. A group at the end of
// the log that is not whole was never acknowledged, and is dropped. A group that
// is not whole and has others behind it was, and is damage: Open fails. So it does
// when a file is shorter than it was made, or the log ends before what the store
// behind, or another segment, knows that it had.
//
// The formats that a database's log may have, and the reasons for the checks,
// follow what PostgreSQL, SQLite and LevelDB say of theirs; the memory that is
// frozen, sorted and merged when read is that of O'Neil and others, The
// Log-Structured Merge-Tree, 1996.
package commitlog
