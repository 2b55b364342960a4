package snapshot

import (
	"fmt"
	"reflect"
)

// Codec turns states into bytes and back. A codec's methods may be called
// concurrently.
//
// A codec is canonical: equal values give equal bytes, whatever the order in
// which their maps were filled, so that comparing encodings tells whether a
// state changed. It is lossless for the types that Check accepts: what was
// encoded decodes to an equal value, nil and empty maps and slices kept apart.
// Pointers are followed; two pointers to one value come back as two values.
type Codec interface {
	// Name is what records call the codec: "msgpack" or "json".
	Name() string

	// Append appends the encoding of v, a value of a checked type or a pointer
	// to one, to dst and returns the extended slice. On an error it returns dst
	// as it was; the error names the field. It keeps nothing of v.
	//
	// A map[string]any, as Decode gives it, is also taken.
	Append(dst []byte, v any) ([]byte, error)

	// Decode reads data, all of it, into the value that into points to. Fields
	// that the type does not have are ignored and fields that data does not
	// have become zero; what into held before is replaced. On an error into is
	// untouched. The value shares no memory with data.
	//
	// A *map[string]any takes any encoded object, for upgrades.
	Decode(data []byte, into any) error

	// Check returns an error for a type of state that has no canonical lossless
	// form. The error names the path of the field and says what to do.
	Check(t reflect.Type) error

	// ToJSON renders encoded state as canonical JSON without knowing its type.
	ToJSON(data []byte) ([]byte, error)
}

// CodecByName returns a new codec of the name that a record carries.
func CodecByName(name string) (Codec, error) {
	switch name {
	case msgpackName:
		return Msgpack(), nil
	case jsonName:
		return JSON(), nil
	}
	return nil, fmt.Errorf("codec %q is unknown: this program has %q and %q", name, msgpackName, jsonName)
}

const (
	msgpackName = "msgpack"
	jsonName    = "json"

	// maxDepth bounds how deep values nest, so that neither a value that holds
	// itself nor hostile input exhausts the stack.
	maxDepth = 1000
)
