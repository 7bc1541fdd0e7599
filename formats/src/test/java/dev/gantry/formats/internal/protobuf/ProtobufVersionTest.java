// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.protobuf;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.testing.ChildJvm;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// TFRecord over another protobuf-java than ours, and without `sun.misc.Unsafe`, in a JVM of its own.
class ProtobufVersionTest {
  private static final Path RECORDS =
      Path.of("src/test/resources/corpus/tfrecord/examples-floats.tfrecord");

  /// Copied here by the build.
  private static final Path OLD = Path.of("target/protobuf/protobuf-java-3.25.5.jar");

  private static final String DENY = "--sun-misc-unsafe-memory-access=deny";

  @TempDir Path folder;

  @Test
  void anOldOneIsToldInOneLineAndServesForReading() throws Exception {
    String refusal =
        "com.google.protobuf:protobuf-java must be 4.33.1 or newer for tf.train.Example (was"
            + " 3.25.5): name the version in your build";
    assertThat(run(OLD, "--sun-misc-unsafe-memory-access=allow"))
        .containsExactly("make: " + refusal, "infer: " + refusal, "index: ok");
  }

  @Test
  void anOldOneIsToldInOneLineWhereUnsafeIsDenied() throws Exception {
    assertThat(run(OLD, DENY))
        .last()
        .isEqualTo(
            "index: com.google.protobuf:protobuf-java must be 4.34.0 or newer where the JVM has the"
                + " option "
                + DENY
                + " (was 3.25.5): name the version in your build");
  }

  @Test
  void oursServesWhereUnsafeIsDenied() throws Exception {
    assertThat(run(null, DENY)).containsExactly("make: ok", "infer: ok", "index: ok");
  }

  @Test
  void theLeastIsTheOneThatCompilesTheMessages() throws IOException {
    assertThat(Path.of("../pom.xml"))
        .content()
        .contains("<protoc.version>" + ProtobufVersion.LEAST + "</protoc.version>");
  }

  /// The lines of a child that uses TFRecord.
  private List<String> run(Path protobuf, String option) throws IOException, InterruptedException {
    List<String> classPath = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      boolean isOurs = Path.of(entry).getFileName().toString().startsWith("protobuf-java-");
      classPath.add(isOurs && protobuf != null ? protobuf.toAbsolutePath().toString() : entry);
    }
    Path copy = Files.copy(RECORDS, folder.resolve("records"));
    Path log = folder.resolve("log");
    Process process =
        ChildJvm.command(
                List.of("-Xmx128m", option, "-cp", String.join(File.pathSeparator, classPath)),
                Child.class,
                copy)
            .redirectOutput(log.toFile())
            .start();
    try {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).isZero();
    } finally {
      process.destroyForcibly();
    }
    return Files.readAllLines(log);
  }

  static final class Child {
    private Child() {}

    public static void main(String[] arguments) {
      Path file = Path.of(arguments[0]);
      GantrySession session = GantrySession.shared();
      say("make", () -> new ExampleBuilder().int64s("label", 7).toBytes());
      say(
          "infer",
          () -> Schema.infer(session, List.of(Location.of(file)), TfRecordOptions.defaults(), 10));
      say("index", () -> TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session));
    }

    private static void say(String what, Runnable work) {
      try {
        work.run();
        System.out.println(what + ": ok");
      } catch (GantryException refusal) {
        System.out.println(what + ": " + refusal.getMessage());
      }
    }
  }
}
