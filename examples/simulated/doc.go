// Package simulated shows how typed entities of one's own are simulated: rooms
// tell their floor what they measure, and a test runs them under many seeds, in
// each of which the process dies a few times. docs/simulation.md explains it.
//
// Rooms is right. The test also has a type that is nearly the same and wrong,
// and asserts that a seed finds it.
package simulated
