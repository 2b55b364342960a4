package httpapi

import "net/http"

const watchText = "Events of the types changed, deleted (the life has ended), left (under a filter: the entity matches no more), gap (changes from one position to another are missing, and why: trimmed, damaged, too_costly, or volatile, which has no positions) and cut (the stream ends, and why). " +
	"Their id is the position behind which Last-Event-ID, or after, goes on; an id without an event moves it on. Without either the stream begins with what comes. Only what is durable is shown, each change once and in the order of positions; changes of volatile pods have none and are told once. " +
	"Comments are heartbeats. A client that does not keep up is cut off, and told so as long as it takes anything at all; it loses nothing if it comes back. " +
	"The filters of all watches have at most 1 MiB together; one beyond that is refused with too_many_watchers, until others have ended."

func watchOperations() []operation {
	watch := func(path, id, summary string, query []string, handle func(*call) error, more ...Code) operation {
		return operation{
			method: http.MethodGet, path: path, id: id, summary: summary, description: watchText, handle: handle, streams: true,
			query: append(query, "filter", "after"), headers: []string{lastEventHeader},
			answers: []answerDoc{{status: http.StatusOK, description: "The stream.", media: []string{eventsType}}},
			codes: append([]Code{
				CodeBadName, CodeBadFilter, CodeNoSuchPod, CodeNoSuchPosition, CodeTooManyWatchers, CodeStoreUnavailable, CodeStopping,
			}, more...),
		}
	}
	return []operation{
		watch("/v1/watch", "watch", "The changes of pods", []string{"pods"}, watchAll),
		watch(podRoute+"/watch", "watch-pod", "The changes of a pod's entities", nil, watchPod),
		watch(entityRoute+"/watch", "watch-entity", "The changes of an entity", nil, watchEntity),
	}
}
