package browsertest

import (
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// within is a script that finds an element which a hand can reach: it is there,
// as large as something, not disabled, not moving, and nothing lies upon it. It
// scrolls there. What it gives is the place to click, or why there is none.
const within = `(async selector => {
	const e = document.querySelector(selector)
	if (!e) return {why: "it is not there"}
	if (e.disabled) return {why: "it is disabled"}
	e.scrollIntoView({block: "center", inline: "center", behavior: "instant"})
	const at = () => { const r = e.getBoundingClientRect(); return {x: r.x + r.width/2, y: r.y + r.height/2, size: r.width * r.height} }
	const frame = () => new Promise(done => { requestAnimationFrame(done); setTimeout(done, 500) })
	const before = at()
	await frame()
	await frame()
	const now = at()
	if (now.size == 0) return {why: "it has no size"}
	if (before.x != now.x || before.y != now.y) return {why: "it moves"}
	const top = document.elementFromPoint(now.x, now.y)
	if (!top || !(e.contains(top) || e.labels && [...e.labels].some(l => l.contains(top)))) return {why: "under " + (top ? top.outerHTML.slice(0, 200) : "nothing")}
	window.browsertestClick = 0
	document.addEventListener("click", c => { if (c.target.closest(selector)) window.browsertestClick++ }, {capture: true, once: true})
	return {x: now.x, y: now.y, why: ""}
})(%s)`

// place is where an element is, or why it cannot be clicked.
type place struct {
	X, Y float64
	Why  string
}

// click clicks an element, once it can be clicked.
func (b *tab) click(selector string) {
	b.t.Helper()
	script := filled(b.t, within, []any{selector})
	b.wait(func() (bool, string) {
		p, err := try[place](b, script)
		if err != nil || p.Why != "" {
			return false, fmt.Sprintf("cannot click %s: %s (%v)", selector, p.Why, err)
		}
		b.do(chromedp.MouseClickXY(p.X, p.Y))
		// It may have moved away just then, and is looked for again. If the page is
		// another one by now, or on its way to be, the click was what did that.
		n, err := try[int](b, `window.browsertestClick ?? 1`)
		return n > 0 || err != nil, "the click missed " + selector
	})
}

// write replaces the text of a field by another.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.click(selector)
	b.until(`document.activeElement === document.querySelector(%s)`, selector)
	run[any](b, `void document.activeElement.select()`)
	if text == "" {
		b.press(kb.Delete)
		return
	}
	b.text(text)
}

// text writes to where the focus is.
func (b *tab) text(text string) {
	b.t.Helper()
	b.do(called(input.InsertText, input.InsertTextParams{Text: text}))
}

// press presses keys one after the other, each as a keyboard does: what a key
// writes belongs to its going down, and is not written if the page prevents that.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		for _, r := range key {
			k := kb.Keys[r]
			down := input.DispatchKeyEventParams{
				Type: kb.KeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: k.Windows,
				Text: k.Text, UnmodifiedText: k.Unmodified,
			}
			if k.Shift {
				down.Modifiers = int64(chromedp.ModifierShift)
			}
			up := down
			up.Type, up.Text, up.UnmodifiedText = kb.KeyUp, "", ""
			b.do(called(input.DispatchKeyEvent, down), called(input.DispatchKeyEvent, up))
		}
	}
}

// choose chooses a value of a select, as the keyboard does.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.until(`[...document.querySelector(%s)?.options ?? []].some(o => o.value == %s)`, selector, value)
	run[any](b, `(() => {
		const s = document.querySelector(%s)
		s.focus()
		s.value = %s
		s.dispatchEvent(new Event("input", {bubbles: true}))
		s.dispatchEvent(new Event("change", {bubbles: true}))
	})()`, selector, value)
}

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(selector string, most int) {
	b.t.Helper()
	var passed []string
	for range most {
		if run[bool](b, `Boolean(document.activeElement?.matches(%s))`, selector) {
			return
		}
		b.press(kb.Tab)
		passed = append(passed, run[string](b, `document.activeElement.outerHTML.slice(0, 100)`))
	}
	b.t.Fatalf("Tab does not come to %s but to\n%s", selector, strings.Join(passed, "\n"))
}
