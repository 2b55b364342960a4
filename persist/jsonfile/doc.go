// Package jsonfile keeps entities in a folder of readable JSON files: the store
// for small installations, for looking at what is there, and for state that is
// compared by tools for text. It implements persist.PersistenceService.
//
// # What is in the folder
//
//	store.json                    what else belongs to the store
//	journal/….jsonl               the journal: one line for each unit
//	pods/rooms/tower-3-21.json    one file for each entity, with its rows
//	lock                          held while a store has the folder open
//
// A commit is one write to the journal and one sync for all the units of a
// call: a line is a unit, and a unit is durable with its line. The entities'
// files follow within Config.Flush, each written beside, synced and renamed, and
// many commits to an entity are one file; what a crash kept from the files is
// done again from the journal at Open. That costs one sync where writing files
// at once would cost two an entity, and the journal, which has to be kept in any
// case, is the only thing that is ever written in place.
//
// # Whom it is for
//
// Open reads every file, and the names, lives and positions stay in memory:
// some hundreds of bytes an entity and about a hundred a change that the journal
// keeps, by estimate. States do not. A pod is one flat folder, so that files are found by hand. Up to some
// 100,000 entities that is comfortable; persist/bolt is for more, for states
// that change all the time, and for entities with thousands of rows, since a
// file is written as a whole.
//
// # Names
//
// Small letters, digits, hyphens and underscores stand for themselves, dots too
// but at the ends; a capital is ! and the small letter, any other byte is % and
// two hexadecimal digits: no two names share a file, also where the file system
// folds case or normalises Unicode, and no file is called con or "..". A name
// that would be longer than 200 bytes ends in ~ and a hash, and a file beside
// it, ending in .name, has it in full. Texts must be UTF-8; a unit with one that
// is not is refused.
//
// # Damage
//
// A file of an entity that is not what was written is that entity's matter: it
// is listed with an error that wraps snapshot.ErrCorrupt, never absent and never
// blank, and a forced deletion or an import ends that. Where only a row is
// damaged, only the row is. A damaged line of the journal is a change with an
// error; when the line is one that the entity's file may not show yet, that
// entity is unreadable. Open refuses the folder, with ErrDamaged, when store.json
// is damaged, when a part of the journal is missing or was cut, when such a line
// does not even say whose it is, and when files were removed or added by hand;
// see Config.IgnoreMissing.
//
// # Editing by hand
//
// A file may be edited while no store has the folder open and the last one was
// closed in good order. Put "edited" in the place of the last checksum; the next
// Open makes one more revision of it and a change of type "edited", so that
// history and subscribers know. Without that the file counts as damaged. What is
// shown beside "data" in base64 is for the reader alone and cannot be edited,
// and the state of an entity whose truth is its events is only a cache of them.
package jsonfile
