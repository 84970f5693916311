"""A small source in each language, and what its grammar finds there; decorators and comments right above count."""

from __future__ import annotations

SOURCES = {
    "python": """\
'''Doc.'''
import os

LIMIT = 3


# about it
@decorated(1)
class Server(Base):
    # first
    x = 1

    # opens
    @property
    def start(self):
        def inner():
            pass
        return inner

    async def stop(self): ...


def main() -> None:
    pass
""",
    "javascript": """\
// head

/** Doc. */
export class Server {
  constructor() {}
  // starts
  start(port) { return port; }
  #secret() {}
}
export const handler = async (x) => {
  return x;
};
function plain() {}
const LIMIT = 3;
module.exports.run = function () {};
export default function main() {}
""",
    "typescript": """\
export interface Shape { area(): number }
export type Id = string;
enum Color { Red }
namespace Deep { export function f() {} }
@Component({})
export class Server<T> {
  private port: number = 1;
  @Input()
  start(): void {}
}
abstract class A { abstract go(): void; }
export const make = (x: number): number => x;
""",
    "tsx": """\
export function App(): JSX.Element {
  return <div>hi</div>;
}
""",
    "go": """\
package main

// Server serves.
type Server struct {
	port int
}

type (
	A int
	B string
)

// Start starts.
func (s *Server) Start() error {
	return nil
}

func main() {}

const Limit = 3
""",
    "rust": """\
/// A server.
#[derive(Debug)]
pub struct Server { port: u16 }

impl Server {
    /// Starts.
    pub fn start(&self) {}
}

impl std::fmt::Display for Server {
    fn fmt(&self) {}
}

pub trait Run { fn run(&self); }
enum E { A }
mod inner { pub fn f() {} }
const LIMIT: u32 = 3;
macro_rules! m { () => {} }
""",
    "java": """\
package a;

/** Doc. */
@Deprecated
public class Server {
    private int port = 1;

    public Server() {}

    // starts
    @Override
    public void start() {}

    enum State { ON }
}
interface Run { void run(); }
record P(int x) {}
""",
    "c": """\
#include <stdio.h>
#define LIMIT 3

/* a point */
struct point {
    int x;
};

typedef struct { int y; } pt_t;

enum color { RED };

// adds
static int add(int a, int b)
{
    return a + b;
}

char *name(void) { return 0; }
int proto(void);
""",
    "cpp": """\
namespace deep {
// A server.
template <typename T>
class Server {
 public:
  Server() {}
  ~Server() {}
  void start() { go(); }
  int port() const;
};

int Server::port() const { return 1; }
template <typename T> T id(T x) { return x; }
struct P { int x; };
}
int main() { return 0; }
""",
    "c-sharp": """\
using System;
namespace Deep {
    /// <summary>Doc</summary>
    [Serializable]
    public class Server {
        private int port = 1;
        public int Port { get; set; }
        public Server() {}
        public void Start() { }
        enum State { On }
    }
    interface IRun { void Run(); }
}
""",
    "ruby": """\
LIMIT = 3
module Deep
  # A server.
  class Server < Base
    # starts
    def start(x)
      x
    end

    def self.make; end
  end
end
""",
    "php": """\
<?php
namespace App;

/** Doc. */
#[Attr]
class Server {
    private int $port = 1;
    public function start(): void {}
}
interface Run { function run(); }
trait T {}
enum Suit { case A; }
function main() {}
""",
    "bash": """\
#!/bin/bash
# starts
start() {
  echo hi
}

function stop {
  echo
}
LIMIT=3
export PORT=1
""",
    "json": """\
{
  "name": "x",
  "deep": {
    "inner": [1, 2],
    "last": null
  }
}
""",
    "yaml": """\
# head
name: x
deep:
  # about
  inner:
    - a
    - b: 1
  last: 3
""",
    "toml": """\
title = "x"

# the server
[server]
port = 1

[server.deep]
a.b = 2

[[item]]
x = 1
""",
    "html": """\
<!doctype html>
<html><body>
<h1>Title</h1>
<!-- the list -->
<div id="list">
  <p id=raw>x</p>
  <ul id="inner"><li>a</li></ul>
</div>
</body></html>
""",
    "css": """\
/* the head */
.head, #top {
  color: red;
}
@media (max-width: 10px) {
  .head { color: blue; }
}
@keyframes spin { from { top: 0 } }
""",
    "markdown": """\
# Title

text

## Part one

more

Under
-----

x

# Next
""",
    "kotlin": """\
package a.b
import c.d.E
import f.g.*

// a server
@Deprecated("x")
class Server(val port: Int) {
    val x = 1

    // starts
    fun start(): Int {
        return 1
    }

    companion object {
        fun make() = Server(1)
    }

    enum class State { ON, OFF }
}

interface Run {
    fun run()
}

object Single
fun main() {}
const val LIMIT = 3
typealias Id = String
""",
    "swift": """\
import Foundation

// a server
class Server: Base {
    var port = 1
    init() {}
    // starts
    @discardableResult
    func start(x: Int) -> Int { return 1 }
}
struct P { let x: Int }
enum E { case a }
protocol Run { func run() }
extension Server { func stop() {} }
func main() {}
let LIMIT = 3
typealias Id = String
""",
    "lua": """\
local m = require("a.b")
require "c"

-- starts
function start(x)
  return x
end

local function inner() end
function M.go() end
function M:stop() end
M.run = function() end
local f = function() end
LIMIT = 3
""",
    "scala": """\
package a

import b.c.D
import e.{F, G}

// a server
class Server(x: Int) extends Base {
  val port = 1

  // starts
  @tailrec
  def start(): Int = 1
}

object Main {
  def main(a: Array[String]): Unit = {}
}
trait Run { def run(): Unit }
case class P(x: Int)
enum Color { case Red }
type Id = String
""",
    "sql": """\
-- users
CREATE TABLE users (id INT, name TEXT);
CREATE VIEW v AS SELECT 1;
CREATE INDEX i ON users (id);
CREATE FUNCTION f(x int) RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql;
CREATE TRIGGER t BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION f();
CREATE TYPE mood AS ENUM ('a');
SELECT * FROM users;
""",
}

EXPECTED = {
    "python": """
        constant LIMIT 4-4
        class Server 7-20
        method Server.start 13-18
        function Server.start.inner 16-17
        method Server.stop 20-20
        function main 23-24
    """,
    "javascript": """
        class Server 3-9
        method Server.constructor 5-5
        method Server.start 6-7
        method Server.#secret 8-8
        function handler 10-12
        function plain 13-13
        constant LIMIT 14-14
        function run 15-15
        function main 16-16
    """,
    "typescript": """
        interface Shape 1-1
        method Shape.area 1-1
        type Id 2-2
        enum Color 3-3
        module Deep 4-4
        function Deep.f 4-4
        class Server 5-10
        field Server.port 7-7
        method Server.start 8-9
        class A 11-11
        method A.go 11-11
        function make 12-12
    """,
    "tsx": """
        function App 1-3
    """,
    "go": """
        struct Server 3-6
        type A 9-9
        type B 10-10
        method Server.Start 13-16
        function main 18-18
        constant Limit 20-20
    """,
    "rust": """
        struct Server 1-3
        impl Server 5-8
        method Server.start 6-7
        impl Server 10-12
        method Server.fmt 11-11
        interface Run 14-14
        method Run.run 14-14
        enum E 15-15
        module inner 16-16
        method inner.f 16-16
        constant LIMIT 17-17
        macro m 18-18
    """,
    "java": """
        class Server 3-15
        field Server.port 6-6
        method Server.Server 8-8
        method Server.start 10-12
        enum Server.State 14-14
        interface Run 16-16
        method Run.run 16-16
        class P 17-17
    """,
    "c": """
        macro LIMIT 2-2
        struct point 4-7
        type pt_t 9-9
        enum color 11-11
        function add 13-17
        function name 19-19
        function proto 20-20
    """,
    "cpp": """
        module deep 1-15
        class deep.Server 2-10
        method deep.Server.Server 6-6
        method deep.Server.~Server 7-7
        method deep.Server.start 8-8
        method deep.Server.port 9-9
        method deep.Server.port 12-12
        function deep.id 13-13
        struct deep.P 14-14
        function main 16-16
    """,
    "c-sharp": """
        module Deep 2-13
        class Deep.Server 3-11
        field Deep.Server.port 6-6
        property Deep.Server.Port 7-7
        method Deep.Server.Server 8-8
        method Deep.Server.Start 9-9
        enum Deep.Server.State 10-10
        interface Deep.IRun 12-12
        method Deep.IRun.Run 12-12
    """,
    "ruby": """
        constant LIMIT 1-1
        module Deep 2-12
        class Deep.Server 3-11
        method Deep.Server.start 5-8
        method Deep.Server.make 10-10
    """,
    "php": """
        module App 2-2
        class Server 4-9
        field Server.port 7-7
        method Server.start 8-8
        interface Run 10-10
        method Run.run 10-10
        interface T 11-11
        enum Suit 12-12
        function main 13-13
    """,
    "bash": """
        function start 2-5
        function stop 7-9
        variable LIMIT 10-10
        variable PORT 11-11
    """,
    "json": """
        key name 2-2
        key deep 3-6
        key deep.inner 4-4
        key deep.last 5-5
    """,
    "yaml": """
        key name 1-2
        key deep 3-8
        key deep.inner 4-7
        key deep.inner.b 7-7
        key deep.last 8-8
    """,
    "toml": """
        key title 1-1
        table server 3-5
        key server.port 5-5
        table server.deep 7-8
        key server.deep.a.b 8-8
        table item 10-11
        key item.x 11-11
    """,
    "html": """
        heading Title 3-3
        element list 4-8
        element list.inner 7-7
    """,
    "css": """
        rule .head, #top 1-4
        rule (max-width: 10px) 5-7
        rule (max-width: 10px)..head 6-6
        rule spin 8-8
    """,
    "markdown": """
        heading Title 1-12
        heading Title.Part one 5-12
        heading Title.Part one.Under 9-10
        heading Next 14-14
    """,
    "kotlin": """
        class Server 5-20
        property Server.x 8-8
        method Server.start 10-13
        method Server.make 16-16
        class Server.State 19-19
        interface Run 22-24
        method Run.run 23-23
        class Single 26-26
        function main 27-27
        variable LIMIT 28-28
        type Id 29-29
    """,
    "swift": """
        class Server 3-10
        property Server.port 5-5
        method Server.init 6-6
        method Server.start 7-9
        struct P 11-11
        property P.x 11-11
        enum E 12-12
        interface Run 13-13
        method Run.run 13-13
        impl Server 14-14
        method Server.stop 14-14
        function main 15-15
        variable LIMIT 16-16
        type Id 17-17
    """,
    "lua": """
        constant m 1-1
        function start 4-7
        function inner 9-9
        function M.go 10-10
        method M.stop 11-11
        function M.run 12-12
        function f 13-13
        constant LIMIT 14-14
    """,
    "scala": """
        class Server 6-13
        property Server.port 8-8
        method Server.start 10-12
        module Main 15-17
        function Main.main 16-16
        trait Run 18-18
        method Run.run 18-18
        class P 19-19
        enum Color 20-20
        type Id 21-21
    """,
    "sql": """
        table users 1-2
        view v 3-3
        index i 4-4
        function f 5-5
        trigger t 6-6
        type mood 7-7
    """,
}

IMPORTS = {
    "python": (
        "import os, a.b as c\nfrom . import x\ndef f():\n    from ..a.b import (c as d, e)\nfrom q import *\n",
        ["1 os", "1 a.b", "2 . x", "4 ..a.b c e", "5 q *"],
    ),
    "javascript": (
        (
            'import a, {b as c, d} from "./x";\nimport * as q from "y";\nexport {z} from "./z";\nexport * from "./w";\n'
            'const s = require("ss");\nawait import("./dyn");\nimport "side";\nother("no");\n'
        ),
        ["1 ./x a b d", "2 y *", "3 ./z z", "4 ./w", "5 ss", "6 ./dyn", "7 side"],
    ),
    "typescript": ('import type {D} from "./x";\nimport r = require("rr");\n', ["1 ./x D", "2 rr"]),
    "tsx": ('import App from "./App";\n', ["1 ./App App"]),
    "go": ('package a\nimport "fmt"\nimport (\n\tq "a/b"\n\t. "c/d"\n)\n', ["2 fmt", "4 a/b", "5 c/d"]),
    "rust": (
        "use crate::a::{b, c as d};\nuse super::x::*;\nmod foo;\nmod bar { }\nextern crate q;\npub use self::y;\n",
        ["1 crate::a::{b, c as d}", "2 super::x::*", "3 self::foo", "5 q", "6 self::y"],
    ),
    "java": ("import a.b.C;\nimport static a.b.C.m;\nimport a.b.*;\n", ["1 a.b.C", "2 a.b.C.m", "3 a.b *"]),
    "c": ('#include <stdio.h>\n#include "x/y.h"\n#include MACRO\n', ["1 <stdio.h>", '2 "x/y.h"']),
    "cpp": ('#include <vector>\n#include "x/y.hpp"\n', ["1 <vector>", '2 "x/y.hpp"']),
    "c-sharp": (
        "using A.B;\nusing X = A.C;\nusing static A.D;\nusing System;\n",
        ["1 A.B", "2 A.C", "3 A.D", "4 System"],
    ),
    "ruby": ('require "x"\nrequire_relative \'./y\'\nputs "x"\n', ["1 x", "2 ./y"]),
    "php": (
        '<?php\nuse A\\B;\nrequire "x.php";\ninclude_once __DIR__ . "/y.php";\n',
        ["2 A\\B", "3 x.php", "4 /y.php"],
    ),
    "bash": ("source ./x.sh\n. y.sh\necho x\n", ["1 ./x.sh", "2 y.sh"]),
    "css": ('@import "x.css";\n@import url("y.css");\n', ["1 x.css", "2 y.css"]),
    "html": ('<script src="x.js"></script>\n<link href="y.css">\n<a href="q">q</a>\n', ["1 x.js", "2 y.css"]),
    "kotlin": ("import c.d.E\nimport f.g.*\n", ["1 c.d.E", "2 f.g"]),
    "swift": ("import Foundation\n", ["1 Foundation"]),
    "lua": ('local m = require("a.b")\nrequire "c"\nother "no"\n', ["1 a.b", "2 c"]),
    "scala": ("import b.c.D\nimport e.{F, G}\n", ["1 b.c.D", "2 e.{F, G}"]),
}
"""A source in each language that has imports, and what is found of them: line, source, names."""
