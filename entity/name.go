package entity

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxName is the longest name of an entity, in bytes.
const MaxName = 256

// CheckName returns an error wrapping ErrName, with the rule it breaks, when
// name cannot be an entity's: names are valid UTF-8 of 1 to 256 bytes without
// U+0000, and neither "." nor "..".
func CheckName(name string) error {
	if fault := nameFault(name); fault != "" {
		return fmt.Errorf("%w: an entity's name %s", ErrName, fault)
	}
	return nil
}

// nameFault says why a name cannot be that of an entity, a message or an event;
// empty if it can.
func nameFault(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > MaxName:
		return fmt.Sprintf("has at most %d bytes, this one has %d", MaxName, len(name))
	case name == "." || name == "..":
		return fmt.Sprintf("must not be %q", name)
	case !utf8.ValidString(name):
		return "must be valid UTF-8"
	case strings.IndexByte(name, 0) >= 0:
		return "must not contain U+0000"
	}
	return ""
}

// CheckPodName returns an error wrapping ErrName when name cannot be a pod's:
// those match [a-z0-9][a-z0-9._-]{0,63}.
func CheckPodName(name string) error {
	ok := len(name) > 0 && len(name) <= 64
	for i := 0; i < len(name) && ok; i++ {
		c := name[i]
		alnum := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		ok = alnum || i > 0 && (c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%w: a pod's name must match [a-z0-9][a-z0-9._-]{0,63}, %q does not", ErrName, name)
	}
	return nil
}
