// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import dev.gantry.core.internal.cufile.DriverSettings;
import dev.gantry.core.internal.diagnosis.Remedy;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.json.JsonReader;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Optional;

/// Checks the `cufile.json` that libcufile reads. libcufile ignores a damaged file without an
/// error, so only this check reports the damage.
public final class CuFileSettings {
  /// The parser allows comments, because NVIDIA's own `cufile.json` has some.
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .enable(JsonReadFeature.ALLOW_JAVA_COMMENTS)
          .enable(JsonReadFeature.ALLOW_YAML_COMMENTS)
          .build();

  private CuFileSettings() {}

  /// Returns what is wrong with the file; empty if there is no file, or nothing is wrong with it.
  ///
  /// @param choice the file that libcufile reads; empty if there is none
  public static Optional<Remedy.Finding> finding(Optional<DriverSettings.Choice> choice) {
    return choice.flatMap(one -> {
      String fault = fault(one);
      String by = one.by().isEmpty() ? "" : one.by() + " names ";
      return fault.isEmpty()
          ? Optional.empty()
          : Optional.of(
              new Remedy.Finding(
                  Remedy.DAMAGED_SETTINGS, "cufile", by + one.file() + ": " + fault));
    });
  }

  private static String fault(DriverSettings.Choice choice) {
    try (JsonParser json = JSON.createParser(Files.readAllBytes(choice.file()))) {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        return "the file is not a JSON object";
      }
      json.skipChildren();
      return json.nextToken() == null ? "" : "the file has further text after the JSON object";
    } catch (JacksonException e) {
      return "line "
          + e.getLocation().getLineNr()
          + ", column "
          + e.getLocation().getColumnNr()
          + ": "
          + JsonReader.words(e);
    } catch (IOException e) {
      return "the file cannot be read: "
          + FileErrors.of("read", choice.file().toString(), e).failure().describe();
    }
  }
}
