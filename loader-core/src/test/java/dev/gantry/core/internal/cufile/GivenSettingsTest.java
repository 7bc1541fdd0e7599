// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.stub.StubControls;
import dev.gantry.testing.stub.StubbedJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A settings file that the environment names before the process starts.
class GivenSettingsTest {
  @TempDir Path folder;

  /// Opens a driver with settings, and prints the batch size that it has read.
  static final class Start {
    public static void main(String[] arguments) {
      CuFileConfig settings = CuFileConfig.of(Map.of("properties.io_batchsize", 32));
      try (TransferEngine engine =
          new TransferEngine(FileCalls.ofPlatform(), List.of(), settings)) {
        System.out.println(engine.cuFile().driver(Transport.COMPAT).toOptional().isPresent());
        System.out.println(StubControls.cuFile().config("io_batchsize"));
      }
    }
  }

  @Test
  void itCountsBeforeASessionsSettings() throws IOException {
    Path given = Files.writeString(folder.resolve("given.json"), "{\"io_batchsize\": 48}");
    ChildJvm.Result result =
        StubbedJvm.run(Start.class, Map.of(DriverSettings.VARIABLE, given.toString()));
    assertThat(result.out()).as("%s", result).isEqualTo("true\n48\n");
    assertThat(result.err())
        .contains(
            "CUFILE_ENV_PATH_JSON is set to "
                + given
                + ": libcufile reads that, and not the session's own settings");
  }

  @Test
  void otherwiseTheSessionsCount() {
    ChildJvm.Result result = StubbedJvm.run(Start.class, Map.of());
    assertThat(result.out()).as("%s", result).isEqualTo("true\n32\n");
    assertThat(result.err()).doesNotContain("CUFILE_ENV_PATH_JSON");
  }
}
