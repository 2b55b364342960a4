package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/httpapi"
)

// contract is a served OpenAPI document. Every answer that a test of this package
// gets is held against it, and every request that was answered well.
type contract struct {
	OpenAPI   string                               `json:"openapi"`
	Paths     map[string]map[string]operationInDoc `json:"paths"`
	validator validator.Validator

	mu     sync.Mutex
	judged map[met]int
}

// met is an answer as far as the document tells answers apart.
type met struct {
	operation string
	status    int
	code      string
}

type operationInDoc struct {
	OperationID string                `json:"operationId"`
	Responses   map[string]responseIn `json:"responses"`
	Parameters  []parameterInDoc      `json:"parameters"`
	RequestBody *struct {
		Content map[string]any `json:"content"`
	} `json:"requestBody"`
}

type parameterInDoc struct {
	Name, In string
	Required bool
}

// general is the operation for all pods that one for a certain pod is of.
func (o operationInDoc) general() string {
	id, _, _ := strings.Cut(o.OperationID, "/")
	return id
}

type responseIn struct {
	Headers map[string]any `json:"headers"`
	Content map[string]struct {
		Schema struct {
			Ref   string `json:"$ref"`
			AllOf []struct {
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"allOf"`
		} `json:"schema"`
	} `json:"content"`
}

func (r responseIn) codes() []string {
	var out []string
	for _, s := range r.Content["application/problem+json"].Schema.AllOf {
		out = append(out, s.Properties["code"].Enum...)
	}
	return out
}

// contracts are those of the documents that were served, since reading one takes
// a while, and what was met of them.
var contracts struct {
	sync.Mutex
	byText map[string]*contract
	met    map[met]bool
	widest *contract // the one with the most operations
}

func contractOf(t testing.TB, text string) *contract {
	t.Helper()
	contracts.Lock()
	defer contracts.Unlock()
	if c := contracts.byText[text]; c != nil {
		return c
	}
	c := &contract{judged: make(map[met]int)}
	require.NoError(t, json.Unmarshal([]byte(text), c))
	doc, err := libopenapi.NewDocument([]byte(text))
	require.NoError(t, err)
	var errs []error
	c.validator, errs = validator.NewValidator(doc)
	require.Empty(t, errs)
	ok, failures := c.validator.ValidateDocument()
	require.True(t, ok, said(failures))
	if contracts.byText == nil {
		contracts.byText, contracts.met = make(map[string]*contract), make(map[met]bool)
	}
	contracts.byText[text] = c
	if contracts.widest == nil || len(c.Paths) > len(contracts.widest.Paths) {
		contracts.widest = c
	}
	return c
}

func said(failures []*errors.ValidationError) string {
	var b strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&b, "%s: %s\n", f.Message, f.Reason)
		for _, s := range f.SchemaValidationErrors {
			fmt.Fprintf(&b, "  %s: %s\n", s.FieldPath, s.Reason)
		}
	}
	return b.String()
}

// plain is a path whose names are replaced by plain ones, since a name's slashes
// are no business of the document.
func plain(path string) string {
	parts := strings.Split(path, "/")
	set := func(i int, before, value string) bool {
		if len(parts) <= i || parts[i-1] != before {
			return false
		}
		parts[i] = value
		return true
	}
	switch {
	case len(parts) < 4 || parts[1] != "v1":
	case parts[2] == "quarantine":
		if parts[3] = "pod"; len(parts) > 4 {
			parts[4] = "name"
		}
	case set(3, "futures", "id"):
	case parts[2] == "pods":
		if !simple(parts[3]) {
			parts[3] = "pod"
		}
		if set(5, "entities", "name") && len(parts) > 7 {
			if parts[6] == "state" {
				parts = append(parts[:7], "pointer")
			} else if parts[6] == "messages" && !simple(parts[7]) {
				parts[7] = "type"
			}
		}
	}
	return strings.Join(parts, "/")
}

func simple(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// operation finds the operation of a plain path; one without parameters goes
// first.
func (c *contract) operation(method, path string) (op operationInDoc, found bool) {
	parts, fewest := strings.Split(path, "/"), 100
	for template, methods := range c.Paths {
		want := strings.Split(template, "/")
		same := len(want) == len(parts)
		for i := 0; same && i < len(want); i++ {
			same = want[i] == parts[i] || strings.HasPrefix(want[i], "{")
		}
		if o, ok := methods[strings.ToLower(method)]; same && ok && strings.Count(template, "{") < fewest {
			op, found, fewest = o, true, strings.Count(template, "{")
		}
	}
	return op, found
}

// check holds an answer against the document: errors are problems with a code
// that goes with their status and that the document names for the operation.
func (c *contract) check(w *world, req *http.Request, sent []byte, path string, a *answer) {
	w.t.Helper()
	if a.status >= 400 && req.Method != http.MethodHead {
		require.Equal(w.t, "application/problem+json", a.header.Get("Content-Type"), "%s: %d %s", w.last, a.status, a.body)
		var p httpapi.Problem
		d := json.NewDecoder(strings.NewReader(a.body))
		d.DisallowUnknownFields()
		require.NoError(w.t, d.Decode(&p), a.body)
		require.Equal(w.t, a.status, p.Status)
		require.Contains(w.t, httpapi.Codes(), p.Code)
		require.Equal(w.t, p.Code.Status(), a.status, a.body)
		require.NotEmpty(w.t, p.Detail)
		a.code = string(p.Code)
	}
	if c == nil || req.Method == http.MethodHead { // the document itself
		return
	}
	path = plain(path)
	op, ok := c.operation(req.Method, path)
	if !ok {
		if a.status >= 400 {
			require.Contains(w.t, []string{"not_found", "method_not_allowed", "bad_name", "bad_pointer", "unauthorized", "forbidden_host", "forbidden_origin"}, a.code, w.last)
		}
		return
	}
	if a.code != "" {
		require.Contains(w.t, op.Responses[strconv.Itoa(a.status)].codes(), a.code, "%s: the document does not name %s (%s)", w.last, a.code, a.body)
	}
	m := met{op.general(), a.status, a.code}
	contracts.Lock()
	contracts.met[m] = true
	contracts.Unlock()
	const often = 10 // what was judged so many times is passed over
	c.mu.Lock()
	c.judged[m]++
	over := c.judged[m] > often
	c.mu.Unlock()
	if over {
		return
	}
	like := &http.Request{
		Method: req.Method, URL: &url.URL{Scheme: "http", Host: "localhost", Path: path, RawQuery: req.URL.RawQuery},
		Header: req.Header, Body: io.NopCloser(bytes.NewReader(sent)), ContentLength: int64(len(sent)),
	}
	resp := &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: like}
	ok, failures := c.validator.ValidateHttpResponse(like, resp)
	require.True(w.t, ok, "%s: the answer is not as the document says: %s\n%d %s", w.last, said(failures), a.status, a.body)
	if a.status < 300 && (m.operation != "batch" || !strings.Contains(a.body, `"problem"`)) { // its messages fail one by one
		ok, failures = c.validator.ValidateHttpRequest(like)
		require.True(w.t, ok, "%s: the request was answered well, and the document does not allow it: %s", w.last, said(failures))
	}
}

// note notes an answer that is a stream, without its body.
func (c *contract) note(t testing.TB, req *http.Request, resp *http.Response) {
	t.Helper()
	op, ok := c.operation(req.Method, plain(req.URL.EscapedPath()))
	require.True(t, ok, req.URL)
	contracts.Lock()
	defer contracts.Unlock()
	contracts.met[met{operation: op.general(), status: resp.StatusCode}] = true
}

// TestMain ends with a look at what all tests together have met: every operation
// with every one of its good answers, and every code.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && !slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.run") || strings.HasPrefix(a, "-test.fuzz") }) {
		code = missed()
	}
	for _, c := range contracts.byText {
		c.validator.Release()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// missed prints what no test has met, and returns 1 if there is something.
func missed() (code int) {
	codes := map[string]bool{}
	contracts.Lock()
	defer contracts.Unlock()
	for m := range contracts.met {
		codes[m.code] = true
	}
	miss := func(what string) { fmt.Fprintln(os.Stderr, "no test has met:", what); code = 1 }
	for _, c := range httpapi.Codes() {
		if c != httpapi.CodeNotFound && c != httpapi.CodeMethodNotAllowed && !codes[string(c)] {
			miss(string(c))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(contracts.widest.Paths)) {
		for _, op := range contracts.widest.Paths[path] {
			for status := range op.Responses {
				n, _ := strconv.Atoi(status)
				if n < 400 && !contracts.met[met{operation: op.general(), status: n}] {
					miss(op.OperationID + " " + status)
				}
			}
		}
	}
	return code
}
