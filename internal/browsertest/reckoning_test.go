package browsertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// reckoned is what an expression over the exports of one of the page's modules
// (m, and json for those of json.js) comes to, as JSON.
type reckoned struct{ module, expression, want string }

// What the page only reckons is what it should be.
func TestWhatThePageReckons(t *testing.T) {
	t.Parallel()
	b := open(t, twinsrv(t), "/")
	b.until(`document.querySelector("pod-list")`)
	for _, r := range reckonings() {
		got := run[string](b, fmt.Sprintf(`(async () => {
			const m = await import("./explorer/%s.js"), json = await import("./explorer/json.js");
			const fails = (f) => { try { f(); return "no error"; } catch (err) { return err.message; } };
			return JSON.stringify(%s) ?? "undefined";
		})()`, r.module, r.expression))
		assert.Equal(t, r.want, got, "%s: %s", r.module, r.expression)
	}
}

func reckonings() []reckoned {
	return []reckoned{
		// Numbers keep their text.
		{"json", `m.stringify(m.parse('{"a":2523232323232323232,"b":2.50,"c":-0,"d":1e400,"e":0.00000001,"f":[1,2.5,-3e2],"g":"1.0"}'))`, `"{\"a\":2523232323232323232,\"b\":2.50,\"c\":-0,\"d\":1e400,\"e\":0.00000001,\"f\":[1,2.5,-3e2],\"g\":\"1.0\"}"`},
		{"json", `["0.1", "123456789.1234567", "1.7976931348623157e308", "100000000000000000000000"].map((t) => m.stringify(m.parse(t)))`, `["0.1","123456789.1234567","1.7976931348623157e308","100000000000000000000000"]`},
		{"json", `m.stringify(m.parse(' {"__proto__" : {"x":1.0}, "constructor":[ ], "é\\u0041":null} '))`, `"{\"__proto__\":{\"x\":1.0},\"constructor\":[],\"éA\":null}"`},
		{"json", `m.stringify(m.parse('{"a":[],"b":{"c":[1,{}]}}'), "  ")`, `"{\n  \"a\": [],\n  \"b\": {\n    \"c\": [\n      1,\n      {}\n    ]\n  }\n}"`},
		{"json", `[m.equal(m.parse("1.0"), m.parse("1")), m.equal(m.parse('{"a":1.0,"b":[2]}'), m.parse('{"b":[2],"a":1.0}')), m.equal({}, []), m.equal(null, {}), m.equal({a: undefined}, {b: 1})]`, `[false,true,false,false,false]`},
		{"json", `[m.numberOf(m.parse("2.50")), m.numberOf(m.parse("1e400")), m.numberOf("1"), m.isNumberText("01"), m.isNumberText("-1.5e3"), m.isNumberText("1 ")]`, `[2.5,null,null,false,true,false]`},
		// What is no JSON is refused, with its place.
		{"json", `['{"a":1,}', '{"a" 1}', '[1,2', '{"a":tru}', '"\\x"', '{"a":1}}', '', '{"a":01}', '{"a":1,\n"a":2}'].map((t) => fails(() => m.parseTyped(t)))`, `["line 1, column 8: a name in quotes should stand here","line 1, column 6: : should stand here","line 1, column 5: the text ends too early","line 1, column 6: a value should stand here","line 1, column 1: this text is not written as JSON: it ends with a quote, and \\ stands before quotes and ends of lines","line 1, column 8: nothing more should stand here","line 1, column 1: the text ends too early","line 1, column 7: , or } should stand here","line 2, column 1: \"a\" stands twice"]`},

		// Events come whole, however the text is cut.
		{"sse", `(() => {
			const text = "\ufeff: beat\n\nid: 7\n\nid: 8\r\nevent: changed\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\rdata\r\rnonsense: 1\nevent: gap\n\ndata: half";
			const reads = [1, 2, 3, 7, 1000].map((size) => {
				const found = [], p = new m.EventParser((e) => found.push(e), (c) => found.push(c));
				for (let i = 0; i < text.length; i += size) p.push(text.slice(i, i + size));
				return JSON.stringify(found);
			});
			return [new Set(reads).size, JSON.parse(reads[0])];
		})()`, `[1,["beat",{"event":"","id":"7"},{"event":"changed","data":"{\"a\":\n1}","id":"8"},{"event":"message","data":"x\n"}]]`},

		// Places lead where they say, whatever names are made of.
		{"route", `["", "#/pods", "#/actors", "#/pods/rooms?filter=a%20%3E%201&sort=-x", "#/pods/rooms/a%2Fb%25/history", "#/pods/rooms/x/none", "#/nonsense", "#/pods/rooms/%zz"].map(m.parseRoute)`, `[{"view":"pods","params":{}},{"view":"pods","params":{}},{"view":"actors","params":{}},{"view":"pod","pod":"rooms","params":{"filter":"a > 1","sort":"-x"}},{"view":"entity","pod":"rooms","name":"a/b%","tab":"history","params":{}},{"view":"entity","pod":"rooms","name":"x","tab":"state","params":{}},{"view":"pods","params":{}},{"view":"entity","pod":"rooms","name":"%zz","tab":"state","params":{}}]`},
		{"route", `["a/b", "100%", "?x#y", "é 🙂", "...", "<b>", "+"].every((name) => m.parseRoute(m.formatRoute({view: "entity", pod: "p", name, tab: "messages"})).name === name)`, `true`},
		{"route", `m.formatRoute({view: "pod", pod: "p", params: {filter: 'name == "a&b"', cursor: "", page: 2}})`, `"#/pods/p?filter=name+%3D%3D+%22a%26b%22&page=2"`},
		{"paths", `[["state", "celsius"], ["state", "odd name", 0, "x"], ["state", 'quo"te'], ["revision"]].map((s) => [m.formatPath(s), JSON.stringify(m.parsePath(m.formatPath(s))) === JSON.stringify(s)])`, `[["state.celsius",true],["state[\"odd name\"][0].x",true],["state[\"quo\\\"te\"]",true],["revision",true]]`},
		{"paths", `[m.at({a: [{b: 1}]}, ["a", 0, "b"]), m.at({a: 1}, ["a", "b"]), m.at({}, ["constructor"]), m.parsePath("a b"), m.pointer("/a", "x/y~z"), m.steps("/a/x~1y~0z/")]`, `[1,null,null,null,"/a/x~1y~0z",["a","x/y~z",""]]`},

		// What is different is listed, and merged where it can be.
		{"diff", `m.diff({a: 1, b: {c: [1, 2, 3], d: "x"}, e: null}, {a: 1, b: {c: [1, 9], d: "x"}, f: {}}).map((d) => [d.kind, d.pointer, d.before ?? null, d.after ?? null])`, `[["changed","/b/c/1",2,9],["removed","/b/c/2",3,null],["removed","/e",null,null],["added","/f",null,{}]]`},
		{"diff", `[m.diff({a: {}}, {a: []}).length, m.diff({a: 1}, {a: 1}).length, m.diff({}, Object.fromEntries([...Array(500).keys()].map((n) => [n, n]))).length, m.diff({}, {["a/b"]: 1})[0].pointer]`, `[1,0,200,"/a~1b"]`},
		{"merge", `m.places({a: 1, b: 1, c: {d: 1, e: 1}, l: [1]}, {a: 2, b: 1, c: {d: 2, e: 1}, l: [1, 2]}, {a: 3, b: 4, c: {d: 1, e: 9}, l: [1, 2]}).map((p) => [p.pointer, p.both])`, `[["/a",true],["/b",false],["/c/d",false],["/c/e",false]]`},
		{"merge", `["theirs", "yours"].map((whose) => m.merged({a: 1, b: 1, c: {d: 1, e: 1}, g: 1}, {a: 2, b: 1, c: {d: 2, e: 1}, g: 1, n: 1}, {a: 3, b: 4, c: {d: 1, e: 9}}, new Map([["/a", whose]])))`, `[{"a":2,"b":4,"c":{"d":2,"e":9},"n":1},{"a":3,"b":4,"c":{"d":2,"e":9},"n":1}]`},
		{"merge", `[m.places({a: 1}, {}, {a: 2})[0].both, m.merged({a: 1}, {}, {a: 2}, new Map([["/a", "theirs"]])), m.merged({a: 1}, {}, {a: 2}, new Map([["/a", "yours"]])), m.merged({l: [1]}, {l: [2]}, {l: [1], x: 1}, new Map())]`, `[true,{},{"a":2},{"l":[2],"x":1}]`},

		// Schemas say what a form has.
		{"schema", `(() => { const root = {$ref: "#/$defs/A", $defs: {A: {type: "object", properties: {n: {anyOf: [{$ref: "#/$defs/B"}, {type: "null"}]}, s: {type: ["string", "null"]}}}, B: {type: "integer"}, C: {$ref: "#/$defs/C"}}};
			const a = m.typesOf(root, root);
			return [a.types, m.typesOf(root, a.value.properties.n), m.typesOf(root, a.value.properties.s).nullable, m.resolve(root, {$ref: "elsewhere"}), m.typesOf(root, {$ref: "#/$defs/C"}).types]; })()`, `[["object"],{"value":{"type":"integer"},"types":["integer"],"nullable":true},true,{"foreign":true},[]]`},
		{"columns", `[m.columnsOf({type: "object", properties: {a: {type: "number"}, o: {type: "object", properties: {b: {type: "string"}}}, l: {type: "array"}}}, []), m.columnsOf(undefined, [{x: 1, y: {z: json.parse("1.0")}}, {"odd name": true, l: []}])]`, `[["state.a","state.o.b"],["state.x","state[\"odd name\"]","state.y.z"]]`},
		{"formvalue", `[["21.50", {}, false], ["7", {minimum: 1}, true]].map((a) => json.stringify(m.readNumber(...a)))`, `["21.50","7"]`},
		{"formvalue", `[["x", {}, false], ["1.5", {}, true], ["0", {minimum: 1}, false], ["9", {maximum: 8}, false], ["3", {multipleOf: 2}, true], ["", {}, false]].map((a) => fails(() => m.readNumber(...a)))`, `["a number, such as 21.5","a whole number, such as 21","at least 1","at most 8","a multiple of 2","a number, such as 21.5"]`},
		{"formvalue", `[["🙂", {minLength: 2}], ["abc", {maxLength: 2}], ["b", {pattern: "^a"}], ["x", {format: "date-time"}], ["ok", {pattern: "("}]].map((a) => fails(() => m.readText(...a)))`, `["at least 2 characters","at most 2 characters","of the form ^a","a time, such as 2026-01-31T12:00:00Z","no error"]`},

		// A fault is marked where it is, and said in few words.
		{"celerror", `[m.markFault('"🙂é" == name && (', {line: 1, column: 18}), m.markFault("a &&& b", {line: 1, column: 5}), m.markFault("a", {}), m.markFault("a\nbc", {line: 2, column: 2}).at]`, `[{"before":"\"🙂é\" == name && (","at":"","behind":""},{"before":"a &&","at":"&","behind":" b"},null,"c"]`},
		{"celerror", `m.shortened("filter: line 1, column 26: something is missing at the end; line 2, column 4: more")`, `"something is missing at the end"`},

		// Charts stand right.
		{"scale", `[m.ticks(0, 4, 4), m.ticks(20.9, 21.9, 5), m.ticks(-1, 1, 2), m.ticks(5, 5, 3), m.range([]), m.range([7]), m.range([0]), m.linear([0, 10], [100, 0])(2.5), m.linear([1, 1], [5, 9])(1)]`, `[[0,1,2,3,4],[21,21.2,21.4,21.6,21.8],[-1,0,1],[5],[0,1],[6.65,7.35],[-1,1],75,5]`},
		{"scale", `(() => { const day = new Date(2026, 0, 31).getTime(), hours = m.timeTicks(day + 1, day + 86400000, 5); return [hours.length, hours.every((t) => new Date(t).getHours() % 6 === 0), m.timeTicks(day, day + 10, 5).length <= 6, m.timeText(day, 86400000)]; })()`, `[4,true,true,"00:00"]`},
		{"series", `[...m.seriesOf([{life: 1, revision: 1, changed: "2026-01-01T00:00:00Z", state: {c: 1, o: {d: json.parse("2.50")}, s: "3"}}, {life: 1, revision: 2, changed: "2026-01-01T00:00:01Z", state: {c: 4}}, {life: 1, revision: 3, deleted: true}])].map(([p, all]) => [p, all.map((x) => [x.revision, x.value])])`, `[["state.c",[[1,1],[2,4]]],["state.o.d",[[1,2.5]]]]`},

		// People read it.
		{"format", `[m.brief({a: 1}), m.brief("x".repeat(200), 5), m.brief("a\nb\u0007"), m.visible("a\u202eb\n"), m.span(12.4), m.span(1500), m.rate(0), m.rate(2.345), m.rate(1234.5), m.ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:00:00Z")), m.kindOf(json.parse("1.0")), m.kindOf([]), m.kindOf(undefined)]`, `["{\"a\":1}","xxxx…","a⏎b�","a⟨202E⟩b⟨000A⟩","12 ms","1.5 s","0","2.3","1,235","2 h ago","number","array","missing"]`},
	}
}
