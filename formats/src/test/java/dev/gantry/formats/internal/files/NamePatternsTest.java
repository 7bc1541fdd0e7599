// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NamePatternsTest {
  @TempDir Path folder;

  private static List<Location> expand(boolean folders, String... names) {
    return NamePatterns.expand(GantrySession.shared(), "setPath", List.of(names), folders);
  }

  @Test
  void bracesOfRemoteNamesNeedNoListing() {
    assertThat(expand(false, "s3://bucket/train-{09..11}.tar", "https://host/{a,b}/c"))
        .containsExactly(
            Location.of("s3://bucket/train-09.tar"),
            Location.of("s3://bucket/train-10.tar"),
            Location.of("s3://bucket/train-11.tar"),
            Location.of("https://host/a/c"),
            Location.of("https://host/b/c"));
  }

  /// The shells and the library webdataset count so.
  @Test
  void numbersInBracesCountDownAndAreAsLongAsThePaddedEnd() {
    assertThat(expand(false, "s3://b/{10..8}"))
        .containsExactly(
            Location.of("s3://b/10"), Location.of("s3://b/9"), Location.of("s3://b/8"));
    assertThat(expand(false, "s3://b/{1..002}", "s3://b/{0..1}"))
        .containsExactly(
            Location.of("s3://b/001"),
            Location.of("s3://b/002"),
            Location.of("s3://b/0"),
            Location.of("s3://b/1"));
    assertThat(expand(false, "s3://b/{0..10}"))
        .hasSize(11)
        .startsWith(Location.of("s3://b/0"))
        .endsWith(Location.of("s3://b/10"));
    assertThat(expand(false, "s3://b/{00..100}"))
        .hasSize(101)
        .startsWith(Location.of("s3://b/000"))
        .endsWith(Location.of("s3://b/100"));
  }

  @Test
  void anEmojiMatchesItselfAndAQuestionMark() throws IOException {
    Path cat = Files.createFile(folder.resolve("cat-\uD83D\uDE00-1"));
    Path _ = Files.createFile(folder.resolve("cat-\uD83D\uDE01-10"));
    for (String name : List.of("cat-\uD83D\uDE00-*", "cat-?-1", "*\uD83D\uDE00*")) {
      assertThat(expand(false, folder + "/" + name)).containsExactly(Location.of(cat));
    }
  }

  @Test
  void aQueryOfTheWebIsNoPattern() {
    assertThat(expand(false, "https://host/train.tar?signature=a/b*"))
        .containsExactly(Location.of("https://host/train.tar?signature=a/b*"));
  }

  @Test
  void hiddenFilesAndIndexesMatchNothingAndFoldersOnlyWhereTheyAreWanted() throws IOException {
    for (String name : List.of("b", "a", "a.gantry-index", ".a", "_a", "_b")) {
      Files.createFile(folder.resolve(name));
    }
    Path below = Files.createDirectory(folder.resolve("aa"));
    Location a = Location.of(folder.resolve("a"));
    Location b = Location.of(folder.resolve("b"));
    assertThat(expand(false, folder + "/*")).containsExactly(a, b);
    assertThat(expand(false, folder + "/?")).containsExactly(a, b);
    assertThat(expand(true, folder + "/*")).containsExactly(a, Location.of(below), b);
    assertThat(expand(false, folder + "/_*"))
        .containsExactly(Location.of(folder.resolve("_a")), Location.of(folder.resolve("_b")));
    assertThat(expand(false, folder.resolve("b").toString(), folder + "/{b,a}"))
        .containsExactly(b, b, a);
  }
}
