package browsertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

const (
	options     = `entity-messages details summary`
	messages    = `entity-messages select[name=message]`
	sendIt      = `entity-messages button[data-action=send]`
	replyText   = `entity-messages [data-field=reply]`
	problemNote = `entity-messages problem-note`
)

// A form made from the message's schema sends it, and the reply is shown.
func TestAMessageIsSentByItsForm(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room, "messages"))
	p, err := s.api().Pod(t.Context(), "rooms")
	require.NoError(t, err)
	var names []string
	for _, m := range p.Messages {
		names = append(names, m.Name)
	}
	becomes(b, names, `[...document.querySelector(%s).options].map(o => o.value)`, messages)
	before, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)

	b.choose(messages, "enter")
	b.write(`message-form [name="/people"]`, "3")
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.innerText.includes(%s)`, replyText, fmt.Sprint(before.State["occupants"].(float64)+3))
	becomes(b, "200", `document.querySelector(%s).dataset.status`, replyText)
	b.has(`entity-messages [data-field=sent] li[data-message=enter]`)
	after, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	assert.InDelta(t, before.State["occupants"].(float64)+3, after.State["occupants"], 0)
	assert.Equal(t, before.Revision+1, after.Revision, "it was sent once")

	// A query answers an object, and has nothing to fill in.
	b.choose(messages, "summary")
	b.until(`document.querySelector('message-form [name="/people"]') === null`)
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.innerText.includes("milliCelsius")`, replyText)

	// Another kind of number, with a message id: again it has its effect once.
	b.choose(messages, "measured")
	b.write(`message-form [name="/celsius"]`, "23.75")
	b.click(options)
	b.write(`entity-messages input[name=id]`, "once-4711")
	b.click(sendIt)
	b.until(`document.querySelectorAll("entity-messages [data-field=sent] li[data-message=measured]").length == 1`)
	b.click(sendIt)
	b.until(`document.querySelectorAll("entity-messages [data-field=sent] li[data-message=measured]").length == 2`)
	now, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	assert.InDelta(t, 23.75, now.State["celsius"], 0)
	assert.Equal(t, after.Revision+1, now.Revision)
	b.fits(t, "messages")
}

// What the room refuses is shown with its reason, and changes nothing.
func TestARefusedMessageSaysWhy(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room, "messages"))
	before, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	b.allow(422, "/messages/enter")
	b.choose(messages, "enter")
	b.write(`message-form [name="/people"]`, "-100")
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.dataset.code == "rejected"`, problemNote)
	assert.Contains(t, b.shown(problemNote), "people in the room")
	becomes(b, "422", `document.querySelector("entity-messages [data-field=sent] li").dataset.status`)
	b.fits(t, "a refused message")
	after, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	assert.Equal(t, before, after)

	// The next one goes well, and the problemNote is gone.
	b.write(`message-form [name="/people"]`, "1")
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.dataset.status == "200"`, replyText)
	b.until(`!document.querySelector(%s)?.checkVisibility()`, problemNote)
}

// With async the answer comes later, from a future.
func TestAMessageNeedNotBeWaitedFor(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room, "messages"))
	b.choose(messages, "enter")
	b.write(`message-form [name="/people"]`, "2")
	b.click(options)
	b.click(`entity-messages input[name=async]`)
	b.click(sendIt)
	twin, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
	require.NoError(t, err)
	b.wait(func() (bool, string) {
		now, err := client.Get[map[string]any](t.Context(), s.api().Entity("rooms", room))
		return err == nil && now.State["occupants"].(float64) >= 2, fmt.Sprintf("%v: %v (%v)", twin, now, err)
	})
	b.until(`document.querySelector(%s)?.innerText.trim() != ""`, replyText)
	b.until(`document.querySelector("entity-messages [data-field=sent] li").dataset.status == "200"`)
}

// Any JSON can be sent as it is; what does not fit the schema is said by place.
func TestAMessageCanBeSentAsJSON(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room, "messages"))
	b.allow(422, "/messages/enter")
	b.choose(messages, "enter")
	b.click(options)
	b.click(`entity-messages input[name=raw]`)
	b.write(`entity-messages textarea[name=body]`, `{}`)
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.dataset.code == "schema_violation"`, problemNote)
	assert.Contains(t, b.shown(problemNote), "people")
	b.write(`entity-messages textarea[name=body]`, `{"people":5}`)
	b.click(sendIt)
	b.until(`document.querySelector(%s)?.dataset.status == "200"`, replyText)
}
