package jsonfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxStem is the most bytes of a file's name without its ending. File systems
// allow 255.
const maxStem = 200

// stem returns the name of a file or folder for an entity or pod. Different
// names have different stems, also where the file system folds case or
// normalises Unicode, and no stem means something to an operating system.
//
// Small letters, digits and - _ . stay; a capital is ! and the small letter;
// any other byte is % and two hexadecimal digits. What would be longer than
// maxStem is cut and gets a hash of the whole name behind ~; the name itself
// stands in a file beside it then.
func stem(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.' && i > 0 && i < len(name)-1:
			b.WriteByte(c)
		case 'A' <= c && c <= 'Z':
			b.WriteByte('!')
			b.WriteByte(c + 'a' - 'A')
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	s := b.String()
	if reserved(s) {
		s = fmt.Sprintf("%%%02x%s", s[0], s[1:])
	}
	if len(s) <= maxStem {
		return s
	}
	hash := sha256.Sum256([]byte(name))
	return s[:maxStem-33] + "~" + hex.EncodeToString(hash[:16])
}

// reserved says whether Windows would take the name for a device.
func reserved(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}

// hashed says whether the name cannot be read from its stem.
func hashed(stem string) bool { return strings.IndexByte(stem, '~') >= 0 }

// unstem returns the name of which stem made s. It is not ok for a stem that
// stem does not make, or that is hashed.
func unstem(s string) (name string, ok bool) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '!' && i+1 < len(s):
			i++
			b = append(b, s[i]-('a'-'A'))
		case c == '%' && i+2 < len(s):
			v, err := hex.DecodeString(s[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b = append(b, v[0])
			i += 2
		default:
			b = append(b, c)
		}
	}
	return string(b), stem(string(b)) == s
}
