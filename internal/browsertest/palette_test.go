package browsertest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smaller is a picture with at most 256 colours, which a page hardly has more
// of, and a third of its size. The same picture gives the same bytes.
func smaller(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	flat, is := from.(*image.RGBA) // what a page's picture is
	if !is {
		flat = image.NewRGBA(from.Bounds())
		draw.Draw(flat, flat.Bounds(), from, from.Bounds().Min, draw.Src)
	}
	runs := runsOf(flat.Pix)
	count := map[shade]int{}
	for _, r := range runs {
		count[r.shade] += r.count
	}
	boxes := split(count, 256)
	to := image.NewPaletted(flat.Bounds(), nil)
	index := map[shade]uint8{}
	for i, b := range boxes {
		to.Palette = append(to.Palette, b.mean())
		for _, s := range b {
			index[s.shade] = uint8(i)
		}
	}
	at := 0
	for _, r := range runs {
		for end, i := at+r.count, index[r.shade]; at < end; at++ {
			to.Pix[at] = i
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// shade is a colour: red, green, blue.
type shade [3]uint8

type counted struct {
	shade shade
	count int
}

// runsOf are the pixels of a picture, as red, green, blue and opacity, with those
// alike that stand together as one: a page has large plain parts.
func runsOf(pixels []byte) (runs []counted) {
	for len(pixels) > 0 {
		n := 4
		for n < len(pixels) && bytes.Equal(pixels[n:n+4], pixels[:4]) {
			n += 4
		}
		runs = append(runs, counted{shade(pixels[:3]), n / 4})
		pixels = pixels[n:]
	}
	return runs
}

// box is a part of the colours of a picture.
type box []counted

// split puts colours into boxes of similar ones: again and again the box in
// which one colour for all would be worst is cut at its middle.
func split(count map[shade]int, most int) []box {
	var all box
	for s, n := range count {
		all = append(all, counted{s, n})
	}
	slices.SortFunc(all, func(a, b counted) int { return slices.Compare(a.shade[:], b.shade[:]) })
	boxes := []box{all}
	for len(boxes) < most {
		worst, by, loss := 0, 0, 0.0
		for i, b := range boxes {
			if channel, l := b.spread(); l > loss {
				worst, by, loss = i, channel, l
			}
		}
		if loss == 0 {
			return boxes
		}
		low, high := boxes[worst].cut(by)
		boxes[worst] = low
		boxes = append(boxes, high)
	}
	return boxes
}

// spread returns the channel in which the colours of a box differ most, and by
// how much. Rare colours count nearly as much as common ones: they are what text
// is smoothed with.
func (b box) spread() (channel int, loss float64) {
	for c := range 3 {
		var weight, sum, squares float64
		for _, s := range b {
			w, v := s.weight(), float64(s.shade[c])
			weight, sum, squares = weight+w, sum+w*v, squares+w*v*v
		}
		if l := squares - sum*sum/weight; l > loss+1e-6 {
			channel, loss = c, l
		}
	}
	return channel, loss
}

func (s counted) weight() float64 {
	w := 1.0
	for n := s.count; n > 1; n /= 4 {
		w++
	}
	return w
}

// cut cuts a box in two at the mean of a channel.
func (b box) cut(channel int) (low, high box) {
	slices.SortStableFunc(b, func(x, y counted) int { return cmp.Compare(x.shade[channel], y.shade[channel]) })
	var weight, sum float64
	for _, s := range b {
		weight, sum = weight+s.weight(), sum+s.weight()*float64(s.shade[channel])
	}
	at, _ := slices.BinarySearchFunc(b, sum/weight, func(s counted, mean float64) int {
		return cmp.Compare(float64(s.shade[channel]), mean)
	})
	at = min(max(at, 1), len(b)-1)
	return b[:at:at], b[at:]
}

// mean is the colour that stands for a box: the mean of its pixels.
func (b box) mean() color.Color {
	var sum [3]int
	pixels := 0
	for _, s := range b {
		for c := range 3 {
			sum[c] += int(s.shade[c]) * s.count
		}
		pixels += s.count
	}
	return color.RGBA{uint8(sum[0] / pixels), uint8(sum[1] / pixels), uint8(sum[2] / pixels), 255}
}

func TestASmallerPictureLooksTheSame(t *testing.T) {
	t.Parallel()
	few := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 * 64 {
		few.Set(i%64, i/64, color.RGBA{uint8(i % 200), 40, 90, 255})
	}
	many := image.NewRGBA(image.Rect(0, 0, 128, 128))
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 128 * 128 {
		v := uint8(dice.UintN(256)) // smoothed text: between two colours
		many.Set(i%128, i/128, color.RGBA{v, 255 - v/2, uint8(dice.UintN(40)), 255})
	}
	for _, c := range []struct {
		name    string
		picture *image.RGBA
		off     int
	}{{"few colours", few, 0}, {"many colours", many, 24}} {
		var file bytes.Buffer
		require.NoError(t, png.Encode(&file, c.picture), c.name)
		first, err := smaller(file.Bytes())
		require.NoError(t, err, c.name)
		again, err := smaller(file.Bytes())
		require.NoError(t, err, c.name)
		assert.Equal(t, first, again, c.name)
		got, err := png.Decode(bytes.NewReader(first))
		require.NoError(t, err, c.name)
		require.Equal(t, c.picture.Bounds(), got.Bounds(), c.name)
		worst := 0
		for i := range c.picture.Bounds().Dx() * c.picture.Bounds().Dy() {
			x, y := i%c.picture.Bounds().Dx(), i/c.picture.Bounds().Dx()
			a, b := c.picture.RGBAAt(x, y), color.RGBAModel.Convert(got.At(x, y)).(color.RGBA)
			for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
				worst = max(worst, d, -d)
			}
		}
		assert.LessOrEqual(t, worst, c.off, c.name)
	}
}
