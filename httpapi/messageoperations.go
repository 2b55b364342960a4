package httpapi

import (
	"net/http"
	"reflect"
)

func messageOperations() []operation {
	return []operation{
		{
			method: http.MethodPost, path: messageRoute, id: "post-message", summary: "Send an entity a message", handle: postMessage,
			description: "The body is the message's; an empty one stands for a message without fields. A message to a typed pod must have all members that its schema requires. The message may create the entity, which is answered like any other message. " +
				"The answer is the handler's reply, or {\"life\",\"revision\"} from handlers of the kind \"on\"; its ETag is the entity's behind it. A reply that cannot be written as JSON fails the message, which changes nothing. " +
				"With Prefer: respond-async it is a future of that; what would be refused without the handler, as the entity is now, is refused at once all the same.",
			conditional: true, identified: true, query: []string{"condition", "timeout"},
			body: &bodyDoc{types: []string{jsonType}, description: "The message."},
			answers: []answerDoc{
				{status: http.StatusOK, description: "It was handled.", anyJSON: true, headers: []string{"ETag", appliedHeader}},
				{status: http.StatusAccepted, description: "It was sent, and Location is where its answer will be.", shape: reflect.TypeFor[FutureState](), headers: []string{"Location", appliedHeader}},
			},
			codes: messageCodes(CodeNoSuchMessage),
		},
	}
}

func futureOperations() []operation {
	return []operation{
		{
			method: http.MethodGet, path: futureRoute, id: "get-future", summary: "The answer to a message, if it is there", handle: getFuture,
			description: "A future is kept for 15 minutes after its end, less if there are very many or large ones, and ends with the server. What its message did does not.",
			query:       []string{"wait"}, headers: []string{preferHeader},
			answers: []answerDoc{{status: http.StatusOK, description: "The future.", shape: reflect.TypeFor[FutureState](), headers: []string{appliedHeader}}},
			codes:   []Code{CodeNoSuchFuture, CodeBadPreference},
		},
		{
			method: http.MethodDelete, path: futureRoute, id: "cancel-future", summary: "Wait no more for an answer", handle: deleteFuture,
			description: "Ends the waiting, not the message: it may still be handled, and the outcome is unknown. A future that has ended is forgotten.",
			answers:     []answerDoc{{status: http.StatusNoContent, description: "Nobody waits any more."}},
			codes:       []Code{CodeNoSuchFuture},
		},
	}
}
