package httpapi

import (
	"net/http"
	"reflect"

	"github.com/twinsrv/twinsrv/pod"
)

func podOperations() []operation {
	describedPod := reflect.TypeFor[PodDescription]()
	return []operation{
		{
			method: http.MethodGet, path: "/v1/pods", id: "list-pods", summary: "The pods by name", handle: listPods,
			query:   []string{"limit", "cursor", "figures"},
			answers: []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[PodList]()}},
			codes:   []Code{CodeBadQuery},
		},
		{
			method: http.MethodPut, path: podRoute, id: "put-pod", summary: "Declare a document pod", handle: putPod,
			description: "Declares a pod of JSON documents, or changes the definition of one, durably. Pods of other types are part of a program.",
			query:       []string{"timeout"},
			body:        &bodyDoc{types: []string{jsonType}, shape: reflect.TypeFor[pod.Definition](), needed: []string{"type"}, description: `Only "type" is needed: {"type":"document"}. "durability" is "sync", "async:" and an interval, or "volatile" for entities that end with the server.`},
			answers: []answerDoc{
				{status: http.StatusOK, description: "It was there, and has this definition now.", shape: describedPod},
				{status: http.StatusCreated, description: "It is new.", shape: describedPod, headers: []string{"Location"}},
			},
			codes: []Code{
				CodeMalformed, CodeBadName, CodeBadQuery, CodePodExists, CodeConflict, CodeBodyTooLarge, CodeUnsupportedMedia,
				CodeUnknownField, CodeBadDefinition, CodeStoreUnavailable, CodeStopping, CodeOutcomeUnknown,
			},
		},
		{
			method: http.MethodGet, path: podRoute, id: "get-pod", summary: "What a pod is", handle: getPod,
			answers: []answerDoc{{status: http.StatusOK, description: "The pod.", shape: describedPod}},
			codes:   []Code{CodeBadName, CodeNoSuchPod},
		},
		{
			method: http.MethodDelete, path: podRoute, id: "delete-pod", summary: "Delete a document pod", handle: deletePod,
			description: "Deletes a pod that has no entities, or with cascade=true the pod and its entities. It can be repeated when it fails half-way.",
			query:       []string{"cascade", "timeout"},
			answers:     []answerDoc{{status: http.StatusNoContent, description: "It is gone."}},
			codes: []Code{
				CodeBadName, CodeBadQuery, CodeNoSuchPod, CodePodNotEmpty, CodePodReadOnly, CodeConflict, CodeMailboxFull,
				CodeStoreUnavailable, CodeQuarantined, CodeStopping, CodeOutcomeUnknown,
			},
		},
		{
			method: http.MethodGet, path: podRoute + "/entities", id: "list-entities", summary: "A pod's entities by name, or those that a query finds", handle: listEntities,
			description: "Without a query the entities that cannot be read stand in their places; with one they are listed beside. " + queryText,
			query:       queryParameters(),
			answers:     []answerDoc{{status: http.StatusOK, description: "A page.", shapes: []reflect.Type{reflect.TypeFor[EntityList](), reflect.TypeFor[QueryResult]()}}},
			codes:       []Code{CodeBadName, CodeBadFilter, CodeBadPreference, CodeNoSuchPod, CodeTooCostly, CodeStoreUnavailable, CodeOutcomeUnknown},
		},
	}
}
