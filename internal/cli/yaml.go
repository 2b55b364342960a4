package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// toYAML writes a JSON value as YAML: members in their order, numbers as they
// are written.
func toYAML(value []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(node), e.Close()); err != nil {
		return nil, err
	}
	return escapeYAML(b.Bytes()), nil
}

// yamlNode makes a node of the next value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		return yamlInside(d, t)
	case string:
		return yamlText(t), nil
	case json.Number:
		return yamlNumber(t.String()), nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// yamlInside makes a node of an object or array that has begun.
func yamlInside(d *json.Decoder, begin json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if begin == '{' {
		n.Kind = yaml.MappingNode
	}
	for d.More() {
		item, err := yamlNode(d) // keys are texts
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n.Content == nil {
		n.Style = yaml.FlowStyle
	}
	return n, nil
}

// yamlText quotes what is not printable, so that it can be escaped.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if otherInYAML11(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}

// otherInYAML11 says whether readers of YAML 1.1 may take a text for a bool, a
// number to the base of 60, or a sign, beside what YAML 1.2 takes for no text.
func otherInYAML11(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "=", "<<":
		return true
	}
	digits := strings.Trim(s, "0123456789:._+-")
	return digits == "" && strings.ContainsRune(s, ':')
}

// yamlNumber keeps the number's text. Its tag is left to the reader, who takes a
// number of any size for one.
func yamlNumber(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
}
