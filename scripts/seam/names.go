package main

// Everything here names code that the table is about. When that code moves or gets another
// name, change the name here, and nothing else: the counting must stay the same.

const module = "github.com/redlatch/redlatch"

// name names a function, a method or a type of the library. Pkg is the folder of its
// package, "." for the root.
type name struct{ pkg, typ, fn string }

func (n name) String() string {
	s := n.pkg
	for _, part := range []string{n.typ, n.fn} {
		if part != "" {
			s += "." + part
		}
	}
	return s
}

var (
	// lockRoot is where the walk of the context begins.
	lockRoot = name{"rlock", "Lock", "acquire"}
	// loopRoot is the method that takes a lock for an owner that does not hold it. The wait
	// loop is this method and the methods of the same types that it reaches.
	loopRoot = name{"internal/acquire", "Acquisition", "Run"}
	// loopTypes are the types whose methods make up the wait loop, all in loopRoot's package.
	loopTypes = []string{"Acquisition"}
	// loopState is the struct that holds the state of one call of Lock.
	loopState = name{"internal/acquire", "Acquisition", ""}
	// engine is the type that runs calls.
	engine = name{"internal/engine", "Engine", ""}
	// queuesMethod is the method that tells kinds with a queue on the server from the others.
	queuesMethod = "Queues"
	// queuesIn is the package whose calls of queuesMethod count.
	queuesIn = "internal/acquire"
	// kindInterface is what each kind of lock implements.
	kindInterface = name{"internal/hold", "Kind", ""}
	// fairPackage is the public package of the fair lock.
	fairPackage = "rfairlock"
	// scriptsPackage declares the scripts.
	scriptsPackage = "internal/luasrc"
)

// notLibrary are the folders whose packages are no part of the library: programs, tests, and
// the server inside the process.
var notLibrary = []string{
	"bench", "cmd", "embedded", "examples", "internal/test", "scripts", "test", "transport/transporttest",
}

// decoders decode the replies of scripts that take or transfer a lock.
var decoders = []name{
	{"internal/reply", "", "Acquired"},
	{"internal/reply", "", "Refused"},
}

// kindParts are packages that several kinds are made of.
var kindParts = []string{"internal/fairlock", "internal/hashlock", "internal/plainlock"}

// releaseScripts are the scripts that release a lock for an owner that one process alone
// uses. The key is the script's name, the value the variable that holds it.
var releaseScripts = map[string]string{"release": "Release", "fair_release": "FairRelease"}

// releaseMethod is the method of a kind that fills in the arguments of a release.
const releaseMethod = "Release"

// protocolHeading begins the headings, in pages of docs, below which a release is specified.
const protocolHeading = "### Release"

// fairFiles are the files of the fair lock, as patterns. Add the packages to which its code
// moves. Tests are left out.
var fairFiles = []string{
	"rfairlock/*.go", "internal/fairlock/*.go",
	"internal/fairqueue/*.go", "internal/fairqueue/liveness/*.go", "internal/servertime/*.go",
	"internal/luasrc/fair*.go", "internal/luasrc/fair*.lua",
	"internal/reply/queue.go",
}
