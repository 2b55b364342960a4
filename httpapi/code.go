package httpapi

import "net/http"

// Code says what went wrong, in the member "code" of a problem. Codes do not
// change and do not change their status.
type Code string

// The codes, by status.
const (
	CodeMalformed     Code = "malformed"      // the body is not JSON, or not of the shape that is needed
	CodeBadName       Code = "bad_name"       // a name in the path breaks a rule, which the detail names
	CodeBadPointer    Code = "bad_pointer"    // what follows state/ in the path is no JSON pointer
	CodeBadQuery      Code = "bad_query"      // a parameter of the query is unknown, stands twice or has no usable value
	CodeBadFilter     Code = "bad_filter"     // a condition, filter, path or order cannot be used; line and column say where it goes wrong
	CodeBadPreference Code = "bad_preference" // Prefer asks for something that cannot be
	CodeBadCondition  Code = "bad_condition"  // If-Match or If-None-Match is neither * nor a list of entity tags
	CodeBadMessageID  Code = "bad_message_id" // Idempotency-Key is not one text of 1 to 200 bytes

	CodeUnauthorized Code = "unauthorized" // the request has no token, or none that the server knows

	CodeReadOnlyToken   Code = "read_only_token"  // the token may read, and the request changes something
	CodeForbiddenHost   Code = "forbidden_host"   // the Host header names none of the server's hosts
	CodeForbiddenOrigin Code = "forbidden_origin" // a page of another origin sent the request

	CodeNotFound       Code = "not_found" // there is nothing at this path
	CodeNoSuchPod      Code = "no_such_pod"
	CodeNoSuchEntity   Code = "no_such_entity" // and the request may not create it
	CodeNoSuchMessage  Code = "no_such_message"
	CodeNoSuchValue    Code = "no_such_value"    // nothing stands at the JSON pointer
	CodeNoSuchRevision Code = "no_such_revision" // the entity has not had it, or not at that time
	CodeNoSuchPosition Code = "no_such_position" // the store has not come to it: it is another one's, or this one was put back
	CodeNoSuchFuture   Code = "no_such_future"   // or it has expired
	CodeNotQuarantined Code = "not_quarantined"  // the entity can be read

	CodeMethodNotAllowed Code = "method_not_allowed" // Allow lists the path's methods
	CodeTypedState       Code = "typed_state"        // the state of a typed pod's entity changes by messages only

	CodePodExists   Code = "pod_exists"    // as a pod of another type, or for an import with another definition
	CodePodNotEmpty Code = "pod_not_empty" // and cascade is not set
	CodePodReadOnly Code = "pod_read_only" // its type is not part of this program, or only a program can change it
	CodeConflict    Code = "conflict"      // others changed the entity meanwhile; nothing was applied

	CodeRevisionDropped Code = "revision_dropped" // the history does not keep that revision any more

	CodeStaleRevision   Code = "stale_revision"   // the entity is at no revision that If-Match lists
	CodeConditionFailed Code = "condition_failed" // If-None-Match, If-Match: * or the condition does not hold

	CodeBodyTooLarge     Code = "body_too_large"
	CodeUnsupportedMedia Code = "unsupported_media_type" // Accept lists what is taken

	CodeUnknownField    Code = "unknown_field"     // the body has a field that is not known
	CodeBadDefinition   Code = "bad_definition"    // the definition of a pod
	CodeSchemaViolation Code = "schema_violation"  // the message, or the state that it would lead to, does not fit its JSON Schema; violations lists where
	CodeTooCostly       Code = "too_costly"        // the filter or query needs more work than one request may cause
	CodeRejected        Code = "rejected"          // the handler understood the message and refused it
	CodeStoreRefused    Code = "store_refused"     // the store does not take this state; it is too large, say
	CodeMessageIDReused Code = "message_id_reused" // the Idempotency-Key came with another message before

	CodeMailboxFull     Code = "mailbox_full"      // the entity has too many messages waiting
	CodeTooManyWatchers Code = "too_many_watchers" // as many are watching as may, or their filters are as long as they may be together

	CodeHandlerFailed Code = "handler_failed" // the message's handler or Init failed or panicked
	CodeInternal      Code = "internal"       // a fault of the server, which it logged

	CodeNoBackup Code = "no_backup" // the store cannot write itself out

	CodeStoreUnavailable Code = "store_unavailable" // the store takes nothing, or cannot be read, at the moment; nothing was applied
	CodeQuarantined      Code = "quarantined"       // the entity's record cannot be read
	CodeNotReady         Code = "not_ready"         // something is missing, which the detail names
	CodeStopping         Code = "stopping"          // the server is being stopped
	CodeOverloaded       Code = "overloaded"        // the server has too many requests waiting
	CodeBusy             Code = "busy"              // something must be finished first: messages that the entity sent, another backup

	CodeTimedOut       Code = "timed_out"       // no answer in time, and nothing was changed: it was a read, or was not sent
	CodeOutcomeUnknown Code = "outcome_unknown" // no answer in time: the change may or may not have been made
)

// codesByStatus is the table behind Codes and Status.
func codesByStatus() []statusCodes {
	return []statusCodes{
		{http.StatusBadRequest, []Code{CodeMalformed, CodeBadName, CodeBadPointer, CodeBadQuery, CodeBadFilter, CodeBadPreference, CodeBadCondition, CodeBadMessageID}},
		{http.StatusUnauthorized, []Code{CodeUnauthorized}},
		{http.StatusForbidden, []Code{CodeReadOnlyToken, CodeForbiddenHost, CodeForbiddenOrigin}},
		{http.StatusNotFound, []Code{CodeNotFound, CodeNoSuchPod, CodeNoSuchEntity, CodeNoSuchMessage, CodeNoSuchValue, CodeNoSuchRevision, CodeNoSuchPosition, CodeNoSuchFuture, CodeNotQuarantined}},
		{http.StatusMethodNotAllowed, []Code{CodeMethodNotAllowed, CodeTypedState}},
		{http.StatusConflict, []Code{CodePodExists, CodePodNotEmpty, CodePodReadOnly, CodeConflict}},
		{http.StatusGone, []Code{CodeRevisionDropped}},
		{http.StatusPreconditionFailed, []Code{CodeStaleRevision, CodeConditionFailed}},
		{http.StatusRequestEntityTooLarge, []Code{CodeBodyTooLarge}},
		{http.StatusUnsupportedMediaType, []Code{CodeUnsupportedMedia}},
		{http.StatusUnprocessableEntity, []Code{CodeUnknownField, CodeBadDefinition, CodeSchemaViolation, CodeTooCostly, CodeRejected, CodeStoreRefused, CodeMessageIDReused}},
		{http.StatusTooManyRequests, []Code{CodeMailboxFull, CodeTooManyWatchers}},
		{http.StatusInternalServerError, []Code{CodeHandlerFailed, CodeInternal}},
		{http.StatusNotImplemented, []Code{CodeNoBackup}},
		{http.StatusServiceUnavailable, []Code{CodeStoreUnavailable, CodeQuarantined, CodeNotReady, CodeStopping, CodeOverloaded, CodeBusy}},
		{http.StatusGatewayTimeout, []Code{CodeOutcomeUnknown, CodeTimedOut}},
	}
}

type statusCodes struct {
	status int
	codes  []Code
}

// Codes returns all codes in the order of their status.
func Codes() []Code {
	var all []Code
	for _, s := range codesByStatus() {
		all = append(all, s.codes...)
	}
	return all
}

// Status returns the HTTP status that goes with the code; 500 for one that is
// not known.
func (c Code) Status() int {
	for _, s := range codesByStatus() {
		for _, x := range s.codes {
			if x == c {
				return s.status
			}
		}
	}
	return http.StatusInternalServerError
}

// retry reports whether the same request may succeed in a moment, and with
// that whether the answer has a Retry-After.
func (c Code) retry() bool {
	switch c {
	case CodeMailboxFull, CodeTooManyWatchers, CodeStoreUnavailable, CodeNotReady, CodeOverloaded, CodeStopping, CodeBusy:
		return true
	}
	return false
}
