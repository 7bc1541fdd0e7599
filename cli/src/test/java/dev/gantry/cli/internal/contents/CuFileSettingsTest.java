// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.cufile.DriverSettings;
import dev.gantry.core.internal.diagnosis.Remedy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Tests what `doctor` finds in libcufile's settings.
class CuFileSettingsTest {
  @TempDir Path folder;

  private Optional<String> reason(String text) throws IOException {
    Path file = Files.writeString(folder.resolve("cufile.json"), text);
    return CuFileSettings.finding(Optional.of(new DriverSettings.Choice("", file)))
        .map(finding -> finding.reason().replace(file + ": ", ""));
  }

  @Test
  void nvidiasOwnFileHasComments() throws IOException {
    String settings =
        """
        # /etc/cufile.json
        {
          // where the log is
          "logging": { "level": "ERROR" /* the default */ },
          "denylist": { "drivers": [] }
        }
        """;
    assertThat(reason(settings)).isEmpty();
    assertThat(CuFileSettings.finding(Optional.empty())).isEmpty();
  }

  @Test
  void damageIsFoundByItsPlace() throws IOException {
    assertThat(reason("{\n \"properties\": {\"allow_compat_mode\": fal\n}}"))
        .hasValueSatisfying(
            reason -> assertThat(reason).startsWith("line 2, column ").contains("'fal'"));
    assertThat(reason("{\"properties\": {"))
        .hasValueSatisfying(end -> assertThat(end).contains("end-of-input"));
    assertThat(reason("")).hasValue("the file is not a JSON object");
    assertThat(reason("[1]")).hasValue("the file is not a JSON object");
    assertThat(reason("{} {}")).hasValue("the file has further text after the JSON object");
  }

  @Test
  void aFileThatIsNotThereIsNamedWithWhoNamesIt() {
    Path file = folder.resolve("none.json");
    assertThat(
            CuFileSettings.finding(
                Optional.of(new DriverSettings.Choice(DriverSettings.VARIABLE, file))))
        .hasValue(
            new Remedy.Finding(
                Remedy.DAMAGED_SETTINGS,
                "cufile",
                "CUFILE_ENV_PATH_JSON names "
                    + file
                    + ": the file cannot be read: errno 2 ENOENT: No such file or directory"));
  }
}
