package httpapi

import (
	"net/http"
	"reflect"
)

func historyOperations() []operation {
	codes := []Code{CodeBadName, CodeBadPreference, CodeNoSuchPod, CodeNoSuchEntity, CodeStoreUnavailable, CodeQuarantined, CodeOutcomeUnknown}
	return []operation{
		{
			method: http.MethodGet, path: entityRoute + "/history", id: "get-history", summary: "The changes of an entity, oldest first", handle: getHistory,
			description: "Reads what the history keeps of the present life, or of another one, or with earlier=true of all, also of an entity that was deleted: from one revision to another, both included. What is kept the pod's description says; what retention has dropped of the life that a page begins with the page does.",
			query:       []string{"from", "to", "life", "earlier", "limit", "cursor", "timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[HistoryList]()}},
			codes:       codes,
		},
		{
			method: http.MethodGet, path: entityRoute + "/history/buckets", id: "get-buckets", summary: "A number of an entity's state over time", handle: getBuckets,
			description: "Puts the number that stands at a path in the states of the entity's changes, from a time to another, in buckets of a width.",
			query:       []string{"path", "from", "to", "width", "timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "The buckets that are not empty.", shape: reflect.TypeFor[BucketList]()}},
			codes:       append(codes, CodeBadFilter),
		},
	}
}
