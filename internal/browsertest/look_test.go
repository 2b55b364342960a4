package browsertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// unreadable is a script that finds text which is too faint for what lies behind
// it: less than 4.5 to 1, or 3 to 1 where it is large (WCAG 2, level AA). It
// passes over what is disabled and what is not shown.
const unreadable = `(() => {
	const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true})
	const colour = text => {
		paint.clearRect(0, 0, 1, 1)
		paint.fillStyle = text
		paint.fillRect(0, 0, 1, 1)
		const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data
		return [r, g, b, a / 255]
	}
	const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]))
	const light = c => {
		const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		return 0.2126 * r + 0.7152 * g + 0.0722 * b
	}
	const behind = e => {
		const layers = []
		for (; e; e = e.parentElement) {
			const c = colour(getComputedStyle(e).backgroundColor)
			layers.push(c)
			if (c[3] == 1) break
		}
		const page = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]
		return layers.reduceRight((under, top) => over(top, under), page)
	}
	const found = []
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement
		if (!n.data.trim() || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || e.closest(":disabled, [aria-disabled=true], script, style, option")) continue
		const style = getComputedStyle(e), svg = e instanceof SVGElement
		const back = behind(svg ? e.closest("svg") : e)
		let opacity = 1
		for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity
		const ink = colour(svg ? style.fill : style.color)
		ink[3] *= opacity
		const [a, b] = [light(over(ink, back)), light(back)]
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
		const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && style.fontWeight >= 700
		if (ratio < (large ? 3 : 4.5)) found.push(ratio.toFixed(2) + ": " + n.data.trim().slice(0, 40) + " in " + e.cloneNode().outerHTML.slice(0, 120))
	}
	return [...new Set(found)]
})()`

// nameless is a script that finds what can be operated and has no name for those
// who do not see it.
// What is hidden from them is operated in another way.
const nameless = `[...document.querySelectorAll("a[href], button, input, select, textarea, [role=button], [role=tab], [role=link], [tabindex='0']")]
	.filter(e => e.checkVisibility() && e.type != "hidden" && !e.closest("[aria-hidden=true]"))
	.filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.title || e.textContent.trim() && !/^(SELECT|TEXTAREA)$/.test(e.tagName) || e.labels?.length))
	.map(e => e.cloneNode().outerHTML.slice(0, 160))`

// wide is a script that finds what reaches beyond the page's width, if the page
// scrolls sideways.
const wide = `(() => {
	const width = document.documentElement.clientWidth
	if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return []
	return ["the page is " + document.documentElement.scrollWidth + " pixels wide in a window of " + width,
		...[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 8).map(e => e.cloneNode().outerHTML.slice(0, 120))]
})()`

// fits looks at a view as it is now, and says what people could not read, reach
// or name.
func (b *tab) fits(t *testing.T, where string) {
	t.Helper()
	for what, script := range map[string]string{"too faint": unreadable, "without a name": nameless, "too wide": wide} {
		assert.Empty(t, run[[]string](b, script), fmt.Sprintf("%s: %s", where, what))
	}
}
