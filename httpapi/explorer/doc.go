// Package explorer is the page in which people look at their twins: pods,
// entities with their history, messages to them, actors and dead letters. It is
// made of native modules and elements, with no framework and no build step, and
// is part of the program.
//
// The page holds nothing that needs a token. What it shows it gets from the HTTP
// API of the server that it came from, at addresses relative to its own.
package explorer
