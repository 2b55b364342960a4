package persist

// pageBytes is about how many bytes of changes or rows one page has.
const pageBytes = 1 << 20

// pageSize chooses limits of pages so that one has about pageBytes, whatever
// the size of what is read. Its zero value is ready.
type pageSize struct{ next int }

const (
	firstPage = 32
	maxPage   = 1024
)

func (p *pageSize) limit() int {
	if p.next == 0 {
		p.next = firstPage
	}
	return p.next
}

// adapt chooses the next limit by a page of n items with so many bytes.
func (p *pageSize) adapt(n, size int) {
	if n == 0 {
		return
	}
	fit := pageBytes / max(size/n, 1)
	p.next = min(max(min(fit, 4*p.limit()), 1), maxPage)
}

func (p *pageSize) saw(changes []Change) {
	size := 0
	for i := range changes {
		size += len(changes[i].Data)
	}
	p.adapt(len(changes), size)
}

func (p *pageSize) sawRows(rows []Row) {
	size := 0
	for i := range rows {
		size += len(rows[i].Value)
	}
	p.adapt(len(rows), size)
}
