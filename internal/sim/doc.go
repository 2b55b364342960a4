// Package sim runs entities, pods and the committer as they are, on the seeded
// executor and a disk that a seed makes slow, failing and forgetful, and looks
// whether what DESIGN promises has held. A seed decides everything: the commands
// and when they come, which actor runs next, how long a sync takes and what
// becomes of it, and when the process dies.
//
// Run runs one seed. The same seed gives the same run, to the byte of its trace.
package sim
