// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class HubNameTest {
  /// `parse_hf_uri` of Python's `huggingface_hub` 1.33 reads the same parts, except that Gantry
  /// also decodes paths.
  @ParameterizedTest
  @CsvSource({
    "hf://org/model, MODEL, org/model, main, ''",
    "hf://org/model/, MODEL, org/model, main, ''",
    "hf://models/org/model, MODEL, org/model, main, ''",
    "hf://org/model@v1.0, MODEL, org/model, v1.0, ''",
    "hf://org/model@v1.0/a/b.json, MODEL, org/model, v1.0, a/b.json",
    "hf://datasets/my-org/my.data_set/x@1.csv, DATASET, my-org/my.data_set, main, x@1.csv",
    "hf://spaces/org/app@refs/pr/10/app.py, SPACE, org/app, refs/pr/10, app.py",
    "hf://org/model@refs/convert/parquet-v2, MODEL, org/model, refs/convert/parquet-v2, ''",
    "hf://org/model@feature%2Fx/a%20b, MODEL, org/model, feature/x, a b",
    "hf://org/model/c++%2Bd, MODEL, org/model, main, c+++d"
  })
  void aNameHasTheseParts(
      String text, HubName.Kind kind, String repository, String revision, String path) {
    HubName name = HubName.of(Location.of(text));
    assertThat(name).isEqualTo(new HubName(kind, repository, revision, path));
    assertThat(HubName.of(name.location())).isEqualTo(name);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "hf://gpt2",
        "hf://datasets/org",
        "hf://org/model@",
        "hf://org/..",
        "hf://org/a--b",
        "hf://org/model/../other",
        "hf://org/model/a/%2e%2e/%2e%2e/x",
        "hf://org/model/a%5Cb",
        "hf://org/model@..%2F..%2Fx",
        "hf://org/model?download=true",
        "hf://buckets/org/name"
      })
  void aNameThatIsNoneIsRefusedInOneLine(String text) {
    assertThatThrownBy(() -> HubName.of(Location.of(text)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("a name of the hub must ")
        .hasMessageContaining(text.replaceFirst("\\?.*", ""));
  }

  @Test
  void addressesAreThoseOfThePythonLibrary() {
    HubName name = HubName.of(Location.of("hf://datasets/org/name@refs/pr/1/a%20b/c.bin"));
    assertThat(name.resolve()).isEqualTo("/datasets/org/name/resolve/refs%2Fpr%2F1/a%20b/c.bin");
    assertThat(name.revisionApi()).isEqualTo("/api/datasets/org/name/revision/refs%2Fpr%2F1");
    assertThat(name.folder()).isEqualTo("datasets--org--name");
  }
}
