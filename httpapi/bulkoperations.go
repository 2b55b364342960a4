package httpapi

import (
	"net/http"
	"reflect"
)

// bulkOperations are those on many entities at a time.
func bulkOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/v1/export", id: "export", summary: "All entities, as lines of JSON", handle: getExport, streams: true,
			description: "Streams, by pod and name, a line for each pod and for each entity, as it is acknowledged when it is read. Each line has a cursor, behind which an export goes on. " +
				"The last line has the member end; an export without it is not whole.",
			query:   []string{"pods", "cursor"},
			answers: []answerDoc{{status: http.StatusOK, description: "The lines, each a Line.", media: []string{linesType}, line: reflect.TypeFor[Line]()}},
			codes:   []Code{CodeBadName, CodeNoSuchPod, CodeStoreUnavailable, CodeTimedOut},
		},
		{
			method: http.MethodPost, path: "/v1/import", id: "import", summary: "Write many documents", handle: postImport, streams: true,
			description: "Takes lines as an export gives them: declares the pods that are missing, and creates or replaces the documents, with lives and revisions of their own. A pod that is there with another definition keeps it, and its line fails with pod_exists. " +
				"Entities of other types change only by messages, and their lines fail. A line that fails stops no other. The result of each line is sent in the order of the lines while the body is still being read. A client that reads none while it sends gets those that memory has no room for together: of the lines from line to through. " +
				"A line is a definition, an entity or the end, and nothing beside it. One whose state is larger than the store keeps is refused unread. " +
				"The same lines can be sent again. The last line has the member end; an import without it did not come to its end.",
			body:    &bodyDoc{types: []string{linesType}, line: reflect.TypeFor[Line](), description: "Lines, each a Line of which pod, name and state are needed."},
			answers: []answerDoc{{status: http.StatusOK, description: "The results, each an ImportedLine.", media: []string{linesType}, line: reflect.TypeFor[ImportedLine]()}},
			codes:   []Code{CodeUnsupportedMedia},
		},
		{
			method: http.MethodPost, path: "/v1/batch", id: "batch", summary: "Send many messages", handle: postBatch,
			description: "Sends up to 1,000 messages. They are handled side by side, those to one entity in their order, and each has the answer that it would have had as a request of its own. " +
				"The timeout is that of the whole batch: messages that are not sent when it is over change nothing, and have the code timed_out. The different conditions of a batch have at most 64 KiB together; messages with others beyond that have the code too_costly. " +
				"The answers have as many bytes as the batch may; those beyond have omitted in place of their body.",
			query:   []string{"timeout"},
			body:    &bodyDoc{types: []string{jsonType}, shape: reflect.TypeFor[[]BatchItem](), description: "The messages."},
			answers: []answerDoc{{status: http.StatusOK, description: "The answers, in the order of the messages.", shape: reflect.TypeFor[BatchResult]()}},
			codes:   []Code{CodeMalformed, CodeBadPreference, CodeBodyTooLarge, CodeUnsupportedMedia},
		},
	}
}
