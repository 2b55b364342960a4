package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A sealed file is a JSON object whose last member is the checksum of every
// byte before it:
//
//	{
//	  …,
//	  "checksum": "crc32c 0123abcd"
//	}
const (
	sealStart = ",\n  \"checksum\": \""
	sealEnd   = "\"\n}\n"
	// edited stands for the checksum in a file that somebody changed on purpose.
	edited = "edited"
)

var (
	errSeal   = errors.New("its checksum is not that of its content")
	errEdited = errors.New("it was edited on purpose")
)

// seal ends a file, whose text so far begins with "{" and lacks its last brace.
func seal(text []byte) []byte {
	sum := checksum(text)
	text = append(text, sealStart...)
	text = fmt.Appendf(text, "crc32c %08x", sum)
	return append(text, sealEnd...)
}

// unseal returns the object in a sealed file, without the checksum. It fails
// with errSeal, or, returning the object all the same, with errEdited.
func unseal(content []byte) ([]byte, error) {
	i := bytes.LastIndex(content, []byte(sealStart))
	if i < 0 {
		return nil, errSeal
	}
	text, sum := content[:i], content[i+len(sealStart):]
	object := append(bytes.Clone(text), '}')
	switch string(sum) {
	case fmt.Sprintf("crc32c %08x", checksum(text)) + sealEnd:
		return object, nil
	case edited + sealEnd:
		return object, errEdited
	}
	// Editors leave their own line ends.
	if string(bytes.Join(bytes.Fields(sum), nil)) == edited+`"}` {
		return object, errEdited
	}
	return nil, errSeal
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// marshal is the JSON of v, compact, with texts as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// strict decodes one JSON object whose every member is known.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one JSON value")
	}
	return nil
}
