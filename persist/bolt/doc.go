// Package bolt keeps entities in one file, by bbolt: the store of a twinsrv on
// one machine. It implements persist.PersistenceService.
//
// Commits are groups: one transaction and two syncs for all the units of a
// call, however many. A value that is damaged in the file is an error for its
// entity alone; a page that is damaged makes Open refuse the file, and says
// which page. Nothing of that panics. A failed sync closes the file; see
// Store.Reopen.
//
// The file belongs to one Store at a time. It is a bbolt file, and bbolt's own
// tools can copy and compact it while no Store has it open.
package bolt
