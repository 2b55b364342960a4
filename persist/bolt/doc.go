// Package bolt keeps entities in one file, by bbolt: the store of a twinsrv on
// one machine. It implements persist.PersistenceService, and with it
// persist.Reopener, Importer, TellingBackuper, Compacter and Folder.
//
// Commits are groups: one transaction and two syncs for all the units of a
// call, however many. Reads are short transactions of at most 256 items or
// about a megabyte, so that the file does not grow behind a long scan.
//
// # Damage and failures
//
//   - A value that is damaged in the file (a record, a change, a row) is an
//     error for itself alone: scans tell it and go on, its entity can be
//     deleted, and Import puts it right.
//   - A page that is damaged, or a key, takes the file out of service, with an
//     error that says which page it is. Open looks at the pages by which all is
//     found; the others are checked while the store serves already, and nothing
//     is written before that has ended well. Until then a read first checks the
//     pages that it needs, so that nothing which damage hides seems absent. See
//     Store.Verified, and Config.VerifyFirst for having it all done by Open.
//   - A page that is damaged while the store serves harms the entities whose
//     page it is; when it is one that every commit needs, the store goes out of
//     service. Nothing of that panics.
//   - A failed sync closes the file, and the outcome of the commit is unknown;
//     see Store.Reopen.
//   - A full disk refuses commits, which then have certainly not happened. Reads
//     go on, and so do commits once there is room.
//
// # Backup and room
//
// Store.Backup writes the file as of one moment while commits go on, and Restore
// makes a file of that; an unpacked backup can also be opened directly.
// Store.Compact gives room back that deletions and trimming have left. Both need
// as much room beside the file as what they write.
//
// # The file
//
// It belongs to one Store at a time. It is a bbolt file, in the byte order of
// the machine. Its format is 1 until the first event is stored
// (persist.Change.Event), and then 2, which programs that know no events refuse.
// While a commit log stands in front of it (see Config.CommitLog) it is 3, which
// programs that know no logs refuse, and afterwards what it was. Each version
// reads the files of those before it; testdata has one of each but the last.
package bolt
