package httpapi

import (
	"net/http"
	"reflect"
	"slices"
)

func quarantineOperations() []operation {
	found := []Code{CodeBadName, CodeBadQuery, CodeNoSuchPod, CodeNoSuchEntity, CodeNotQuarantined}
	asked := []Code{
		CodePodReadOnly, CodeConflict, CodeStoreRefused, CodeMailboxFull, CodeStoreUnavailable,
		CodeQuarantined, CodeStopping, CodeOverloaded, CodeBusy, CodeOutcomeUnknown,
	}
	return []operation{
		{
			method: http.MethodGet, path: quarantineRoute, id: "list-quarantine", summary: "The entities that cannot be read", handle: listQuarantine,
			description: "Lists, by pod and name, the entities that were found to be unreadable. They are found out when they are read, listed or get a message. " +
				"A line without a name is of the pod's own definition: such a pod is read-only until it is declared again.",
			query:   []string{"limit", "cursor"},
			answers: []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[QuarantineList]()}},
			codes:   []Code{CodeBadQuery},
		},
		{
			method: http.MethodGet, path: unreadableRoute, id: "show-quarantined", summary: "Why an entity cannot be read, and what is left of it", handle: showQuarantined,
			query:   []string{"timeout"},
			answers: []answerDoc{{status: http.StatusOK, description: "The reason and the record, as far as it can be read.", shape: reflect.TypeFor[QuarantinedEntity]()}},
			codes:   slices.Concat(found, asked),
		},
		{
			method: http.MethodPost, path: unreadableRoute + "/retry", id: "retry-quarantined", summary: "Read a quarantined entity again", handle: retryQuarantined,
			description: "Has the entity read again, an event-sourced one from its events. If that fails it stays quarantined, and the answer says why.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusOK, description: "The entity, which can be read.", shape: reflect.TypeFor[Envelope](), headers: []string{"ETag"}}},
			codes:       slices.Concat(found, asked),
		},
		{
			method: http.MethodDelete, path: unreadableRoute, id: "remove-quarantined", summary: "End the life of an entity that cannot be read, durably", handle: removeQuarantined,
			description: "An entity that can be read is left alone.",
			query:       []string{"timeout"},
			answers:     []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
			codes:       slices.Concat(found, asked),
		},
	}
}
