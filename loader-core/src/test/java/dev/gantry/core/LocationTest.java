// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LocationTest {
  @Test
  void textWithoutSchemeIsAPath() {
    Location file = Location.of("weights/run:1.safetensors");
    assertThat(file).isEqualTo(Location.of(Path.of("weights/run:1.safetensors")));
    assertThat(file).hasToString("weights/run:1.safetensors");
    assertThat(file.fileName()).isEqualTo("run:1.safetensors");
    assertThat(file.sibling("two")).isEqualTo(Location.of("weights/two"));
    assertThat(file.path()).isEqualTo(Path.of("weights/run:1.safetensors"));
  }

  @Test
  void theEmptyPathIsTheCurrentFolder() {
    assertThat(Location.of(Path.of(""))).hasToString(".");
  }

  @Test
  void aFileUriIsAPath() {
    assertThat(Location.of("file:///tmp/a%20b")).isEqualTo(Location.of(Path.of("/tmp/a b")));
    assertThat(Location.of("file:/tmp/a%20b")).isEqualTo(Location.of(Path.of("/tmp/a b")));
  }

  @Test
  void aSchemeWithOneSlashIsMisuse() {
    for (String text : List.of("s3:/bucket/key", "gantry-resident:/x", "HTTPS:/host/file")) {
      assertThatThrownBy(() -> Location.of(text))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "location must have two slashes after its scheme (was "
                  + text
                  + "); a path of this name begins with ./");
    }
    assertThat(Location.of("./s3:/bucket/key").path()).isEqualTo(Path.of("./s3:/bucket/key"));
    assertThat(Location.of("a:/b").path()).isEqualTo(Path.of("a:/b"));
  }

  @Test
  void otherSchemesNameOtherStores() {
    Location file = Location.of("HTTPS://host:8443/a%20b/model.safetensors");
    assertThat(file)
        .isInstanceOfSatisfying(
            Location.Remote.class, remote -> assertThat(remote.scheme()).isEqualTo("https"));
    assertThat(file.fileName()).isEqualTo("model.safetensors");
    assertThat(file.sibling("x y.bin")).hasToString("HTTPS://host:8443/a%20b/x%20y.bin");
    assertThatThrownBy(file::path)
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("must be a local file");
  }

  @Test
  void aSiblingWithAColonOrAQuestionMarkStaysASibling() {
    Location file = Location.of("https://host/folder/index.json");
    assertThat(file.sibling("a:b")).hasToString("https://host/folder/a:b");
    assertThat(file.sibling("a?b").fileName()).isEqualTo("a?b");
    assertThat(file.sibling("//evil/x")).hasToString("https://host/folder/evil/x");
  }

  @Test
  void theQueryGoesWithASiblingAndStaysOutOfMessages() {
    Location file = Location.of("https://user:word@host/folder/index.json?key=secret");
    assertThat(file).hasToString("https://host/folder/index.json");
    Location sibling = file.sibling("one.safetensors");
    assertThat(sibling).hasToString("https://host/folder/one.safetensors");
    assertThat(((Location.Remote) sibling).uri().getRawQuery()).isEqualTo("key=secret");
    assertThat(new MalformedFileException(file, 0, "kind", "detail").getMessage())
        .doesNotContain("secret")
        .doesNotContain("word");
  }

  @ParameterizedTest
  @CsvSource({
    "s3://KEY:secret@my_bucket/a@b, s3://my_bucket/a@b",
    "http://user:secret@a_host:80/x?y=secret#secret, http://a_host:80/x",
    "hf://owner/name@main/file, hf://owner/name@main/file"
  })
  void secretsAreNotShown(String uri, String shown) {
    assertThat(Location.of(uri)).hasToString(shown);
    assertThatThrownBy(() -> Location.of(uri + "|?secret"))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(shown)
        .hasMessageNotContaining("secret");
  }

  @Test
  void whatIsNeitherPathNorUriIsMisuse() {
    assertThatThrownBy(() -> Location.of("https://host/a b"))
        .isInstanceOf(MisuseException.class)
        .hasMessageStartingWith("location must be a path or a URI");
    assertThatThrownBy(() -> Location.of("a\0b")).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> Location.of(""))
        .isInstanceOf(MisuseException.class)
        .hasMessage("location must be a path or a URI (was empty)");
    assertThatThrownBy(() -> Location.of("file://folder/file"))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "location must name no host after file: (was file://folder/file);"
                + " file:///folder/file is a path of this machine");
  }
}
