package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// maxDescribed is how many pods the document describes beside what holds for
// all.
const maxDescribed = 500

// document is the OpenAPI document: what holds for all pods, and the messages and
// states of those that are there. It is made anew when these have changed.
type document struct {
	base []byte

	mu   sync.Mutex
	of   []*entity.Spec // of which it was made
	text []byte
}

// current returns the document of the pods as they are.
func (d *document) current(pods []*pod.Pod) ([]byte, error) {
	var described []*entity.Spec
	for _, p := range pods {
		if spec := p.Spec(); spec != nil && (spec.Kind == entity.KindTyped || spec.Schema() != nil) && len(described) < maxDescribed {
			described = append(described, spec)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text != nil && equalSpecs(d.of, described) {
		return d.text, nil
	}
	text, err := describePods(d.base, described)
	if err != nil {
		return nil, err
	}
	d.of, d.text = described, text
	return text, nil
}

func equalSpecs(a, b []*entity.Spec) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// object is a JSON object of the document.
type object = map[string]any

// describePods adds pods to the document.
func describePods(base []byte, specs []*entity.Spec) ([]byte, error) {
	if len(specs) == 0 {
		return base, nil
	}
	var doc struct {
		OpenAPI    string          `json:"openapi"`
		Info       json.RawMessage `json:"info"`
		Servers    json.RawMessage `json:"servers"`
		Components object          `json:"components"`
		Security   json.RawMessage `json:"security,omitempty"`
		Paths      object          `json:"paths"`
		Tags       []any           `json:"tags"`
	}
	if err := json.Unmarshal(base, &doc); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	schemas := doc.Components["schemas"].(object)
	for _, spec := range specs {
		p := podDocument{spec: spec, generic: doc.Paths, paths: doc.Paths, schemas: schemas}
		doc.Tags = append(doc.Tags, object{"name": p.tag(), "description": "The pod " + spec.Name + "."})
		if spec.Kind == entity.KindTyped {
			p.typed()
		} else {
			p.document()
		}
		if p.failed != nil {
			return nil, fmt.Errorf("the OpenAPI document: pod %s: %w", spec.Name, p.failed)
		}
	}
	return encode(doc)
}

// podDocument is what the document says of one pod.
type podDocument struct {
	spec           *entity.Spec
	generic, paths object
	schemas        object
	failed         error
}

// typed describes the state and each message of a typed pod.
func (p *podDocument) typed() {
	outgoing, incoming := newTypeSchemas(schemaPrefix, p.spec.Name+".", false), newTypeSchemas(schemaPrefix, p.spec.Name+".message.", true)
	state := p.plain(outgoing.schema(p.spec.State))
	p.reads(state)
	for _, h := range p.spec.Handlers() {
		body := incoming.schema(h.Message)
		reply := p.plain(&huma.Schema{Ref: schemaPrefix + reflect.TypeFor[entity.Ack]().Name()})
		if h.Kind != entity.KindOn {
			reply = p.plain(outgoing.schema(h.Reply))
		}
		p.message(h, p.plain(body), reply)
	}
	for _, s := range []*typeSchemas{outgoing, incoming} {
		for name, schema := range s.components() {
			p.schemas[name] = p.plain(schema)
		}
	}
}

// document describes the state of a document pod that has a schema.
func (p *podDocument) document() {
	schema, ok := p.localSchema()
	if !ok {
		return
	}
	name := p.spec.Name + ".State"
	p.schemas[name] = schema
	state := object{"$ref": schemaPrefix + name}
	p.reads(state)
	if put, ok := p.path(stateRoute)["put"].(object); ok {
		at(put, "requestBody", "content", jsonType)["schema"] = state
	}
}

// localSchema returns the pod's JSON Schema with its references to itself turned
// to where it stands in the document. One that names places of its own cannot
// stand there.
func (p *podDocument) localSchema() (schema any, ok bool) {
	if err := json.Unmarshal(p.spec.Schema(), &schema); err != nil {
		p.failed = err
		return nil, false
	}
	ok = true
	var turn func(v any)
	turn = func(v any) {
		switch v := v.(type) {
		case object:
			for key, x := range v {
				text, isText := x.(string)
				switch {
				case isText && (key == "$id" || key == "$anchor" || key == "$dynamicAnchor" || key == "$dynamicRef"):
					ok = false
				case isText && key == "$ref" && strings.HasPrefix(text, "#"):
					v[key] = schemaPrefix + p.spec.Name + ".State" + text[1:]
				default:
					turn(x)
				}
			}
		case []any:
			for _, x := range v {
				turn(x)
			}
		}
	}
	turn(schema)
	return schema, ok
}

// reads describes the requests that read an entity and its state.
func (p *podDocument) reads(state object) {
	if get, ok := p.path(stateRoute)["get"].(object); ok {
		at(get, "responses", "200", "content", jsonType)["schema"] = state
	}
	if get, ok := p.path(entityRoute)["get"].(object); ok {
		content := at(get, "responses", "200", "content", jsonType)
		content["schema"] = object{"allOf": []any{content["schema"], object{"type": "object", "properties": object{"state": state}}}}
	}
}

// message describes one message.
func (p *podDocument) message(h entity.HandlerInfo, body, reply object) {
	route := strings.Replace(messageRoute, "{type}", strings.NewReplacer("%7B", "{", "%7D", "}").Replace(url.PathEscape(h.Name)), 1)
	if strings.ContainsAny(h.Name, "{}") {
		return // it would be a parameter
	}
	path := p.pathAt(messageRoute, route, h.Name)
	post, ok := path["post"].(object)
	if !ok {
		return
	}
	post["summary"] = fmt.Sprintf("Send an entity of %s the message %s", p.spec.Name, h.Name)
	creates := "It creates no entity."
	if h.Creates {
		creates = "It creates an entity that does not exist."
	}
	post["description"] = fmt.Sprintf("A message of the kind %q. %s %v", h.Kind, creates, post["description"])
	at(post, "requestBody", "content", jsonType)["schema"] = body
	at(post, "responses", "200", "content", jsonType)["schema"] = reply
	post["parameters"] = without(post["parameters"], "type")
}

// path returns the pod's own copy of a path that holds for all pods.
func (p *podDocument) path(route string) object { return p.pathAt(route, route, "") }

func (p *podDocument) pathAt(route, as, name string) object {
	as = strings.Replace(as, "{pod}", p.spec.Name, 1)
	if own, is := p.paths[as].(object); is {
		return own
	}
	data, err := json.Marshal(p.generic[route])
	var own object
	if err == nil {
		err = json.Unmarshal(data, &own)
	}
	if err != nil {
		p.failed = err
		return object{}
	}
	for _, method := range own {
		op, is := method.(object)
		if !is {
			continue
		}
		op["operationId"] = strings.TrimSuffix(fmt.Sprintf("%v/%s/%s", op["operationId"], p.spec.Name, url.PathEscape(name)), "/")
		op["tags"] = []any{p.tag()}
		op["parameters"] = without(op["parameters"], "pod")
	}
	p.paths[as] = own
	return own
}

// tag is that of the pod's own operations, which no group has.
func (p *podDocument) tag() string { return "pod " + p.spec.Name }

// plain is a schema as a JSON object.
func (p *podDocument) plain(s *huma.Schema) (out object) {
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		p.failed = err
	}
	return out
}

// at returns the object below others, which is made if it is missing.
func at(o object, names ...string) object {
	for _, name := range names {
		next, is := o[name].(object)
		if !is {
			next = object{}
			o[name] = next
		}
		o = next
	}
	return o
}

// without returns parameters without the one of a name.
func without(parameters any, name string) any {
	all, is := parameters.([]any)
	if !is {
		return parameters
	}
	out := []any{}
	for _, x := range all {
		if one, is := x.(object); !is || one["name"] != name || one["in"] != "path" {
			out = append(out, x)
		}
	}
	return out
}

func getOpenAPI(c *call) error {
	text, err := c.api.document.current(c.api.pods.All())
	if err != nil {
		return err
	}
	c.w.Header().Set("Cache-Control", "no-cache")
	return c.raw(http.StatusOK, text)
}
