package httpapi

import (
	"net/http"
	"reflect"
	"strings"
)

func serviceOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: "/healthz", id: "health", summary: "Whether the server serves", handle: getHealth, open: true,
			answers: []answerDoc{{status: http.StatusOK, description: "It does.", shape: reflect.TypeFor[Health]()}},
			codes:   []Code{CodeStoreUnavailable},
		},
		{
			method: http.MethodGet, path: "/readyz", id: "ready", summary: "Whether the server takes everything", handle: getReadiness, open: true,
			description: "It is ready when its pods are open, the store takes writes and what is checked at the start has been checked.",
			answers:     []answerDoc{{status: http.StatusOK, description: "It is.", shape: reflect.TypeFor[Readiness]()}},
			codes:       []Code{CodeStoreUnavailable, CodeNotReady, CodeStopping},
		},
		{
			method: http.MethodGet, path: "/metrics", id: "metrics", summary: "Figures for Prometheus", handle: getMetrics,
			answers: []answerDoc{{status: http.StatusOK, description: "The figures.", media: []string{"text/plain"}}},
		},
		{
			method: http.MethodGet, path: "/v1/limits", id: "limits", summary: "The bounds that requests meet", handle: getLimits,
			answers: []answerDoc{{status: http.StatusOK, description: "The bounds.", shape: reflect.TypeFor[Limits]()}},
		},
		{
			method: http.MethodGet, path: "/v1/actors", id: "list-actors", summary: "The tree of actors", handle: listActors,
			description: "Lists actors, parents before their children and those by name, as deep as depth says. The actors of entities are the children of their pod's, such as those of /user/pods/rooms.",
			query:       []string{"path", "depth", "limit", "cursor"},
			answers:     []answerDoc{{status: http.StatusOK, description: "A page.", shape: reflect.TypeFor[ActorList]()}},
			codes:       []Code{CodeNotFound},
		},
		{
			method: http.MethodGet, path: "/v1/deadletters", id: "list-deadletters", summary: "Messages that reached nobody", handle: getDeadLetters,
			description: "The last ones, oldest first; or, for who accepts text/event-stream alone, all that come from now on, as events of the type deadletter. " +
				"Last-Event-ID goes on behind that one; what is not kept any more is an event of the type gap, with the reason dropped, or restarted when the server was. An event of the type cut says why the server ends the stream.",
			query: []string{"limit"}, headers: []string{lastEventHeader}, streams: true,
			answers: []answerDoc{{status: http.StatusOK, description: "The last ones, or the stream.", shape: reflect.TypeFor[DeadLetterList](), media: []string{eventsType}}},
			codes:   []Code{CodeTooManyWatchers},
		},
		{
			method: http.MethodGet, path: "/openapi.json", id: "openapi", summary: "This document", handle: getOpenAPI,
			description: "It describes the messages and states of the pods that are there, beside what holds for all.",
			answers:     []answerDoc{{status: http.StatusOK, description: "OpenAPI 3.1.", anyJSON: true}},
		},
		page("/reference", "reference", "This document as a page", getReference, "text/html"),
		page("/reference/reference.js", "reference-script", "The page's script", getReferenceScript, "text/javascript"),
		page("/reference/reference.css", "reference-style", "The page's style", getReferenceStyle, "text/css"),
		page("/", "explorer-root", "The explorer, a page to look at all this", getExplorer, "text/html"),
		page("/explorer", "explorer", "The explorer as well", getExplorer, "text/html"),
		page("/explorer/{file}", "explorer-file", "A file of the explorer", getExplorer, "text/javascript", "text/css", "image/svg+xml"),
		{
			method: http.MethodPost, path: "/v1/store/backup", id: "backup", summary: "A backup of the whole store", handle: postBackup,
			description: "Streams everything that was acknowledged before the request, as of one moment, while the server works on. " +
				"What comes is of the store's kind; `twinsrv store restore` makes a store of it. A backup is whole if the answer ends regularly.",
			answers: []answerDoc{{status: http.StatusOK, description: "The backup.", media: []string{bytesType}, headers: []string{"Content-Disposition"}}},
			codes:   []Code{CodeNoBackup, CodeBusy, CodeStoreUnavailable},
		},
	}
}

// page is an operation of a page for browsers, which says nothing that needs a
// token: its script gets what it shows.
func page(path, id, summary string, handle func(*call) error, media ...string) operation {
	op := operation{
		method: http.MethodGet, path: path, id: id, summary: summary, handle: handle, open: true,
		answers: []answerDoc{
			{status: http.StatusOK, description: "It loads nothing from other servers.", media: media, headers: []string{"Content-Security-Policy", "ETag"}},
			{status: http.StatusNotModified, description: "If-None-Match names the file as it is.", headers: []string{"ETag"}},
		},
	}
	if strings.Contains(path, "{") {
		op.codes = []Code{CodeNotFound}
	}
	return op
}
