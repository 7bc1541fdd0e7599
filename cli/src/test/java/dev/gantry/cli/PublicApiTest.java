// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Compares the public API with a list in the repository, so that a commit's diff shows which
/// types and members it adds and removes.
///
/// `-Dgantry.api.write=true` rewrites the list.
class PublicApiTest {
  private static final Path LIST = Path.of("..", "docs", "public-api.txt");

  /// More types must be a decision about the library, not an oversight. The following types came
  /// after the 60 of the second edition: `Memory`, for loads into memory that is there already
  /// and for writes from it; `Metrics`, a session's counters, and `SessionMeters`, which bind
  /// them to Micrometer; `CuFileConfig`, libcufile's settings; `RawFile`, for bytes of files into
  /// such memory and out of it; `JointShards`, with which the processes of a cluster write one
  /// set; `DataParallelListener`, with which a training on several GPUs is one on one GPU;
  /// `Placement`, for loads onto several devices; `Checkpoints`, to read saved ones; `SaveMode`,
  /// in place of two options that contradicted each other; `ImageDecoding`, the shape and type
  /// that pictures get; `RestoreRequest`, the part of a checkpoint to restore; `WebDataset` and
  /// `MemberField`, samples in tar archives and their fields.
  private static final int MAX_TYPES_FOR_USERS = 74;

  /// Six types read a folder of the hub, name its tensors, and run its block. The others turn
  /// texts into vectors, scores and labels, each a task that users have: `TextEmbedder`,
  /// `TextScorer`, `TextClassifier`, with the options of all three, and their translators for DJL.
  private static final int MAX_TYPES_OF_MODELS = 13;

  private static final PublicApi API = PublicApi.read();

  @Test
  void theListIsOfTheCompiledClasses() throws IOException {
    List<String> compiled = list();
    if (Boolean.getBoolean("gantry.api.write")) {
      Files.write(LIST, compiled);
    }
    assertThat(difference(Files.readAllLines(LIST), compiled))
        .as("the public API changed; if it should, run this test with -Dgantry.api.write=true")
        .isEmpty();
  }

  @Test
  void noPublicSignatureNamesAnInternalType() {
    assertThat(API.leaks()).isEmpty();
  }

  @Test
  void usersMeetFewTypes() {
    assertThat(API.ofLoader().topLevelTypes()).isLessThanOrEqualTo(MAX_TYPES_FOR_USERS);
    assertThat(API.ofModels().topLevelTypes()).isLessThanOrEqualTo(MAX_TYPES_OF_MODELS);
  }

  private List<String> list() {
    PublicApi users = API.ofLoader();
    PublicApi models = API.ofModels();
    PublicApi implementers = API.ofSpi();
    List<String> lines = new ArrayList<>();
    lines.add(
        "# The public API of loader-core, formats, loader-djl and models, as compiled. A test holds"
            + " it");
    lines.add(
        "# to the classes: mvn test -pl cli -am -Dtest=PublicApiTest -Dgantry.api.write=true");
    lines.add("");
    lines.add("# For users: " + users.topLevelTypes() + " types");
    lines.add("");
    lines.addAll(users.lines());
    lines.add("");
    lines.add("# Models: " + models.topLevelTypes() + " types");
    lines.add("");
    lines.addAll(models.lines());
    lines.add("");
    lines.add(
        "# For those who add a store or a format (spi): "
            + implementers.topLevelTypes()
            + " types");
    lines.add("");
    lines.addAll(implementers.lines());
    return lines;
  }

  /// Returns the lines that only one of the lists has, each member with its type.
  private static List<String> difference(List<String> recorded, List<String> compiled) {
    Set<String> before = withTypes(recorded);
    Set<String> after = withTypes(compiled);
    List<String> difference = new ArrayList<>();
    before.stream()
        .filter(line -> !after.contains(line))
        .map("- "::concat)
        .forEach(difference::add);
    after.stream()
        .filter(line -> !before.contains(line))
        .map("+ "::concat)
        .forEach(difference::add);
    if (difference.isEmpty() && !recorded.equals(compiled)) {
      difference.add("the same lines in another order");
    }
    return difference;
  }

  private static Set<String> withTypes(List<String> lines) {
    Set<String> all = new LinkedHashSet<>();
    String type = "";
    for (String line : lines) {
      if (line.startsWith("  ")) {
        all.add(type + " " + line.strip());
      } else {
        type = line.split(" ", 2)[0];
        all.add(line);
      }
    }
    return all;
  }
}
