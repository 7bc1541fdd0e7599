// SPDX-License-Identifier: Apache-2.0
import com.google.googlejavaformat.java.Main;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// Lays out every Java source of the modules as google-java-format does, or names those that
/// differ.
///
/// `Format.java --check|--write ROOT`. Run as a source file by the JDK that compiles the modules,
/// since the formatter parses with the compiler of the JVM it runs in. One JVM serves all modules.
/// Documentation comments stay as written: the formatter would flow their Markdown into other
/// lines.
void main(String[] arguments) throws Exception {
  if (arguments.length != 2 || !List.of("--check", "--write").contains(arguments[0])) {
    IO.println("usage: Format.java --check|--write ROOT");
    System.exit(64);
  }
  Path root = Path.of(arguments[1]);
  List<String> command = new ArrayList<>(List.of("--skip-javadoc-formatting"));
  if (arguments[0].equals("--check")) {
    command.addAll(List.of("--dry-run", "--set-exit-if-changed"));
  } else {
    command.add("--replace");
  }
  List<String> sources = sources(root);
  if (sources.isEmpty()) {
    IO.println("no Java sources under " + root);
    System.exit(66);
  }
  command.addAll(sources);

  int code =
      new Main(
              new PrintWriter(System.out, true, StandardCharsets.UTF_8),
              new PrintWriter(System.err, true, StandardCharsets.UTF_8),
              InputStream.nullInputStream())
          .format(command.toArray(String[]::new));
  System.out.flush();
  if (code != 0) {
    IO.println("not laid out by google-java-format; mvn -q -N process-sources -Dformat does it");
  }
  System.exit(code);
}

/// The sources of all modules, and those of the build itself.
List<String> sources(Path root) throws IOException {
  List<String> found = new ArrayList<>();
  try (Stream<Path> modules = Files.list(root)) {
    for (Path module : modules.sorted().toList()) {
      Path start = module.endsWith(".ci") ? module : module.resolve("src");
      if (Files.isDirectory(start)) {
        try (Stream<Path> files = Files.walk(start)) {
          files
              .filter(file -> file.toString().endsWith(".java"))
              .map(Path::toString)
              .sorted()
              .forEach(found::add);
        }
      }
    }
  }
  return found;
}
