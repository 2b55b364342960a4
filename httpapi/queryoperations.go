package httpapi

import (
	"net/http"
	"reflect"
)

const queryText = "Finds entities as they are acknowledged: it sees every write that was acknowledged before, and wakes nobody. A filter is an expression in CEL; a missing key is no match, and neither is a result other than true or false. " +
	"Sorted or not, an entity that does not change between two pages is on exactly one. Groups come in place of entities, with what is asked for of each. " +
	"Equality and ranges on a path that the pod declares as an index cost what they find."

func queryOperations() []operation {
	codes := []Code{CodeBadName, CodeBadFilter, CodeBadPreference, CodeNoSuchPod, CodeTooCostly, CodeStoreUnavailable, CodeOutcomeUnknown}
	result := []answerDoc{{status: http.StatusOK, description: "What was found.", shape: reflect.TypeFor[QueryResult]()}}
	post := func(path, id, summary string, handle func(*call) error) operation {
		return operation{
			method: http.MethodPost, path: path, id: id, summary: summary, description: queryText, handle: handle, reads: true,
			query: []string{"timeout"}, body: &bodyDoc{types: []string{jsonType}, shape: reflect.TypeFor[QueryRequest](), description: "The query."},
			answers: result, codes: append(codes, CodeMalformed, CodeUnknownField, CodeBodyTooLarge, CodeUnsupportedMedia),
		}
	}
	return []operation{
		{
			method: http.MethodGet, path: "/v1/entities", id: "query-pods", summary: "Find entities of several pods", handle: queryAll,
			description: queryText + " The order is by pod and name unless it is sorted.",
			query:       append([]string{"pods"}, queryParameters()...), answers: result, codes: codes,
		},
		post("/v1/query", "post-query-pods", "Find entities of several pods, by a long query", postQueryAll),
		post(podRoute+"/query", "post-query", "Find entities of a pod, by a long query", postQuery),
	}
}

// queryParameters are those of a query that stands in the URL.
func queryParameters() []string {
	return []string{"filter", "select", "sort", "limit", "cursor", "count", "prefix", "group", "aggregate", "timeout"}
}
