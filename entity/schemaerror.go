package entity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// SchemaError says that a change was refused, and nothing changed, because the
// state that it would have led to does not fit the pod's schema. It is also
// a RejectedError.
type SchemaError struct {
	// Violations are what is wrong, by pointer; at least one.
	Violations []Violation
	// More counts what is wrong beyond those.
	More int
}

// Violation is one place in which a state does not fit a schema.
type Violation struct {
	// Pointer is the JSON pointer of the value, empty for the whole state.
	Pointer string `json:"pointer"`
	// Message says what is wrong with it, for people.
	Message string `json:"message"`
}

func (e *SchemaError) Error() string { return "rejected: " + e.reason() }

// Unwrap returns the RejectedError.
func (e *SchemaError) Unwrap() error { return &RejectedError{Reason: e.reason()} }

func (e *SchemaError) reason() string {
	var b strings.Builder
	b.WriteString("the state would not fit the pod's schema")
	for i, v := range e.Violations {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", e.More+len(e.Violations)-i)
			break
		}
		fmt.Fprintf(&b, "; %s: %s", rootOr(v.Pointer), v.Message)
	}
	return b.String()
}

func rootOr(pointer string) string {
	if pointer == "" {
		return "the root"
	}
	return pointer
}

const (
	maxViolations  = 100
	maxListedBytes = 32 << 10
	maxPointer     = 1000 // bytes; of a longer one, the beginning is said
	maxMessage     = 300
)

// violations makes a list of what a library's error tells as a tree.
func violations(err *jsonschema.ValidationError) *SchemaError {
	l := lister{printer: message.NewPrinter(language.English)}
	l.take(err)
	slices.SortFunc(l.all, func(x, y Violation) int {
		return cmp.Or(cmp.Compare(x.Pointer, y.Pointer), cmp.Compare(x.Message, y.Message))
	})
	l.all = slices.Compact(l.all) // what two branches demand
	if len(l.all) == 0 {
		l.all = []Violation{{Message: "it does not fit"}}
	}
	n, bytes := 0, 0
	for n < len(l.all) && n < maxViolations && (n == 0 || bytes < maxListedBytes) {
		bytes += len(l.all[n].Pointer) + len(l.all[n].Message)
		n++
	}
	return &SchemaError{Violations: l.all[:n:n], More: len(l.all) - n}
}

// typesURL is where JSON Schema says what may stand as a type.
const typesURL = "https://json-schema.org/draft/2020-12/meta/validation#/properties/type"

type lister struct {
	printer *message.Printer
	all     []Violation
}

func (l *lister) take(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			l.add(e.InstanceLocation, fmt.Sprintf("%q is missing", name))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			l.add(append(slices.Clone(e.InstanceLocation), name), "it is not allowed here")
		}
	case *kind.FalseSchema:
		l.add(e.InstanceLocation, "it is not allowed here")
	case *kind.AnyOf:
		if e.SchemaURL == typesURL { // each alternative alone would pass for the only one
			l.add(e.InstanceLocation, "a type is array, boolean, integer, null, number, object or string, or a list of some of these, each once")
			return
		}
		l.add(e.InstanceLocation, fmt.Sprintf("it fits none of %d alternatives", len(e.Causes)))
		l.takeAll(e.Causes)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			l.add(e.InstanceLocation, "it fits more than one alternative, and must fit one alone")
			return
		}
		l.add(e.InstanceLocation, fmt.Sprintf("it fits none of %d alternatives", len(e.Causes)))
		l.takeAll(e.Causes)
	case *kind.Contains:
		l.add(e.InstanceLocation, "no element is as one must be")
	case *kind.MinContains, *kind.MaxContains:
		l.add(e.InstanceLocation, e.ErrorKind.LocalizedString(l.printer))
	case *kind.PropertyNames:
		why := "its name is not allowed"
		for _, cause := range e.Causes {
			if cause.ErrorKind != nil {
				why += ": " + cause.ErrorKind.LocalizedString(l.printer)
			}
		}
		l.add(append(slices.Clone(e.InstanceLocation), k.Property), why)
	default:
		if len(e.Causes) > 0 {
			l.takeAll(e.Causes)
			return
		}
		if e.ErrorKind != nil {
			l.add(e.InstanceLocation, e.ErrorKind.LocalizedString(l.printer))
		}
	}
}

func (l *lister) takeAll(errs []*jsonschema.ValidationError) {
	for _, e := range errs {
		l.take(e)
	}
}

func (l *lister) add(tokens []string, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	l.all = append(l.all, Violation{Pointer: pointerTo(tokens), Message: message})
}

// pointerTo writes a JSON pointer, as far as it is not too long.
func pointerTo(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		t = PointerToken(t)
		if b.Len()+1+len(t) > maxPointer {
			break
		}
		b.WriteByte('/')
		b.WriteString(t)
	}
	return b.String()
}
