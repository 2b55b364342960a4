// Package apitest holds what the HTTP API promises against what many clients do
// at once. It has tests only.
//
// TWINSRV_ETAG_ROUNDS is how many rounds writers race for an entity; without it
// they are few.
package apitest
