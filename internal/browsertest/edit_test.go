package browsertest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

const (
	editText = `state-editor textarea[name=state]`
	save     = `state-editor button[data-action=save]`
)

// document makes a pod of documents with one in it.
func document(t *testing.T, s *server, name, state string) client.Entity {
	t.Helper()
	_, _, err := s.api().PutPod(t.Context(), "machines", client.Definition{Type: "document"})
	require.NoError(t, err)
	e := s.api().Entity("machines", name)
	_, err = e.Put(t.Context(), json.RawMessage(state))
	require.NoError(t, err)
	return e
}

// state is what an entity is now.
func state(t *testing.T, e client.Entity) string {
	t.Helper()
	twin, err := client.Get[json.RawMessage](t.Context(), e)
	require.NoError(t, err)
	return string(twin.State)
}

// edit opens the editor and writes another state into it.
func (b *tab) edit(text string) {
	b.t.Helper()
	b.click(`entity-view button[data-action=edit]`)
	b.until(`document.querySelector("state-editor")?.dataset.state == "editing"`)
	b.write(editText, text)
}

func TestADocumentIsEdited(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"hall":"north","celsius":21.5,"big":12345678901234567890.125}`)
	b := explore(t, s, entityView("machines", "press-7"))
	b.click(`entity-view button[data-action=edit]`)
	b.until(`document.querySelector("state-editor")?.dataset.state == "editing"`)
	assert.Contains(t, run[string](b, `document.querySelector(%s).value`, editText), "12345678901234567890.125", "numbers keep their text")
	b.fits(t, "the editor")
	b.write(editText, `{"hall": `)
	b.until(`document.querySelector(%s).disabled`, save)
	b.until(`document.querySelector("state-editor [data-field=error]")?.innerText.trim() != ""`)
	b.write(editText, `{"hall":"south","celsius":22,"big":12345678901234567890.125}`)
	b.click(save)
	b.until(`document.querySelector("state-editor")?.dataset.state != "editing" && document.querySelector("state-editor")?.dataset.state != "saving"`)
	becomes(b, `"south"`, value, "/hall")
	becomes(b, `12345678901234567890.125`, value, "/big")
	assert.JSONEq(t, `{"hall":"south","celsius":22,"big":12345678901234567890.125}`, state(t, press))
	assert.Contains(t, state(t, press), "12345678901234567890.125")
}

func TestATypedEntitySaysWhyItCannotBeEdited(t *testing.T) {
	t.Parallel()
	s := buildings(t)
	b := explore(t, s, entityView("rooms", room))
	assert.NotEmpty(t, b.shown(`entity-view [data-field=why-not]`))
	assert.False(t, run[bool](b, `Boolean(document.querySelector("entity-view button[data-action=edit]:not(:disabled)")?.checkVisibility())`))
}

// Somebody else was faster: both sides are shown, and whichever way it is
// settled nothing is lost that nobody gave up.
func TestAConflictIsShownAndSettled(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	const first = `{"hall":"north","celsius":21.5,"note":"old","keep":true}`
	const theirs = `{"hall":"south","celsius":21.5,"note":"theirs","keep":true,"added":1}`
	const yours = `{"hall":"north","celsius":30,"note":"yours","keep":true}`
	for _, c := range []struct {
		name   string
		settle func(b *tab)
		want   string
	}{
		{"merge with yours", func(b *tab) {
			b.until(`document.querySelector("state-conflict button[data-action=merge]").disabled`)
			b.click(`state-conflict tr[data-pointer="/note"] input[value=yours]`)
			b.click(`state-conflict button[data-action=merge]`)
		}, `{"hall":"south","celsius":30,"note":"yours","keep":true,"added":1}`},
		{"merge with theirs", func(b *tab) {
			b.click(`state-conflict tr[data-pointer="/note"] input[value=theirs]`)
			b.click(`state-conflict button[data-action=merge]`)
		}, `{"hall":"south","celsius":30,"note":"theirs","keep":true,"added":1}`},
		{"overwrite", func(b *tab) { b.click(`state-conflict button[data-action=overwrite]`) }, yours},
		{"take theirs", func(b *tab) { b.click(`state-conflict button[data-action=take-theirs]`) }, theirs},
	} {
		t.Run(c.name, func(t *testing.T) {
			press := document(t, s, "press "+c.name, first)
			b := explore(t, s, entityView("machines", press.Name()))
			b.allow(412, "/state")
			b.edit(yours)
			// They are faster. What was typed stays as it is.
			_, err := press.Put(t.Context(), json.RawMessage(theirs))
			require.NoError(t, err)
			b.until(`+document.querySelector("entity-view").dataset.revision >= 2`)
			assert.Equal(t, yours, run[string](b, `document.querySelector(%s).value`, editText))
			b.click(save)
			b.until(`document.querySelector("state-editor")?.dataset.state == "conflict"`)
			assert.JSONEq(t, theirs, state(t, press), "nothing was overwritten")
			side := func(pointer, side string) string {
				return run[string](b, `document.querySelector("state-conflict tr[data-pointer=" + CSS.escape(%s) + "] td[data-side=" + %s + "]").innerText.trim()`, pointer, side)
			}
			assert.Contains(t, side("/note", "base"), "old")
			assert.Contains(t, side("/note", "theirs"), "theirs")
			assert.Contains(t, side("/note", "yours"), "yours")
			assert.Contains(t, side("/hall", "theirs"), "south")
			assert.Contains(t, side("/celsius", "yours"), "30")
			becomes(b, []string{"/note"}, `[...document.querySelectorAll("state-conflict tr[data-both=true]")].map(r => r.dataset.pointer)`)
			b.fits(t, "a conflict")
			c.settle(b)
			b.until(`!document.querySelector("state-conflict, state-editor")`)
			b.wait(func() (bool, string) {
				now := state(t, press)
				return sameJSON(c.want, now), "the state is " + now + " and not " + c.want
			})
			b.until(`document.querySelector("state-tree")?.checkVisibility()`)
			var end struct{ Note json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(c.want), &end))
			becomes(b, string(end.Note), value, "/note")
		})
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && assert.ObjectsAreEqual(x, y)
}

// Deleting asks before, and not more than once.
func TestDeletingAsksBefore(t *testing.T) {
	t.Parallel()
	s := twinsrv(t)
	press := document(t, s, "press-7", `{"hall":"north"}`)
	b := explore(t, s, entityView("machines", "press-7"))
	b.click(`entity-view button[data-action=delete]`)
	b.click(`confirm-dialog dialog[open] button[value=no]`)
	b.until(`!document.querySelector("confirm-dialog dialog[open]")`)
	assert.JSONEq(t, `{"hall":"north"}`, state(t, press))
	b.click(`entity-view button[data-action=delete]`)
	b.click(`confirm-dialog dialog[open] button[value=yes]`)
	b.wait(func() (bool, string) {
		_, err := client.Get[json.RawMessage](t.Context(), press)
		return err != nil, "it is there still"
	})
	_, err := client.Get[json.RawMessage](t.Context(), press)
	require.ErrorIs(t, err, client.NoSuchEntity)
}
