// Package actors simulates the bare actor runtime: actors that tell, ask, fail,
// stash, watch and stop one another as a seed says, on the seeded executor. What
// they see is compared with small models and with counts that know nothing of
// how the runtime works.
//
// Run runs one seed. The same seed gives the same run, to the byte of its trace.
package actors
