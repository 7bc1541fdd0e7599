// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.result.Absence;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Peers of Python, by a shell script that answers in its place.
class PythonPeersTest {
  @TempDir private Path folder;

  private String interpreter(String body) throws IOException {
    Path script = Files.writeString(folder.resolve("python"), "#!/bin/sh\n" + body);
    Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwx------"));
    return script.toString();
  }

  @Test
  void whatIsThereLoadsAndWhatIsNotSaysWhy() throws Exception {
    String python =
        interpreter(
            """
            printf 'have\\tone\\t1.0\\nlack\\ttwo\\tnot installed\\nready\\n'
            while read -r line; do
              case $line in +one*) printf 'seconds\\t0\\n' ;; *bad*) printf 'error\\tbroken\\n' ;; *) printf 'seconds\\t0.25\\n' ;; esac
            done
            """);
    try (PythonPeers peers = PythonPeers.start(python, "cpu", folder)) {
      assertThat(peers.absences()).containsExactly(new Absence("two", "not installed"));
      List<Contender> good = peers.contenders(Path.of("good"), Path.of("spare"));
      assertThat(good).extracting(Contender::name).containsExactly("one");
      assertThat(good.getFirst().run()).isEqualTo(0.25);
      assertThat(good.getFirst().run()).isEqualTo(0.25);
      Contender bad = peers.contenders(Path.of("bad"), Path.of("spare")).getFirst();
      assertThatThrownBy(bad::run).isInstanceOf(IOException.class).hasMessage("broken");
    }
  }

  @Test
  void aProcessThatEndsIsAnAbsence() throws IOException {
    try (PythonPeers peers = PythonPeers.start(interpreter("exit 3\n"), "cpu", folder)) {
      assertThat(peers.isEmpty()).isTrue();
      assertThat(peers.absences())
          .singleElement()
          .satisfies(absence -> assertThat(absence.reason()).contains("python3 has ended"));
    }
  }

  @Test
  void noInterpreterIsAnAbsence() {
    try (PythonPeers peers = PythonPeers.start(folder.resolve("none").toString(), "cpu", folder)) {
      assertThat(peers.isEmpty()).isTrue();
      assertThat(peers.absences())
          .singleElement()
          .satisfies(absence -> assertThat(absence.reason()).contains("none"));
    }
  }
}
