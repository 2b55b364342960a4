// Package httpapi serves pods and their entities over HTTP.
//
// New makes an http.Handler of a pod registry. Its routes, their bodies and
// answers are described by the OpenAPI document that it serves at
// /openapi.json. What the document cannot say:
//
// Names stand in paths percent-encoded, each as one segment, and are decoded
// exactly once: a%2Fb is the entity a/b, a%252Fb the entity a%2Fb.
//
// A JSON pointer into a state stands behind state/ in the path, as its tokens
// stand in it: state/a/b is /a/b, and state/ alone is the member with the empty
// name. Each token is decoded exactly once, and then ~0 and ~1 in it stand for a
// tilde and a slash. A slash that was sent as %2F belongs to its token, as ~1
// does.
//
// Parameters of the query are strict: one that the operation does not know, or
// that stands twice, is refused, since it could be a condition.
//
// Every error is application/problem+json with a Code that stays the same
// between versions. The ETag of an entity is "<life>-<revision>"; If-Match and
// If-None-Match are checked in the same turn of the entity that the request
// changes it in.
//
// Streams of events, exports and imports last as long as the client takes part;
// EndStreams ends them before a server is shut down. Futures and streams are of
// this run of the server; what messages did, and the positions that streams are
// resumed from, outlive it.
//
// With Config.Tokens every operation but the pages that say nothing (healthz,
// readyz, the reference, the explorer) needs a bearer's token.
//
// Answers of writes and reads are given when all that they were computed on is
// durable. 504 outcome_unknown is the only answer that leaves open whether a
// change was made; after any other error nothing was changed.
//
// A browser's page of another origin is refused, and so is a Host header that
// names neither a loopback address nor a host of Config.Hosts, since such a
// request was led here by somebody else's DNS.
package httpapi
