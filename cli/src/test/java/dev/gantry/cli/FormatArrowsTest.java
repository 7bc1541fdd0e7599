// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.type;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Checks which packages of formats may depend on which.
class FormatArrowsTest extends ArchitectureFixture {
  /// The packages of formats, each with the other packages that it may depend on.
  static Stream<Arguments> formats() {
    String root = "dev.gantry.formats";
    String spi = root + ".spi";
    String internal = root + ".internal";
    String files = internal + ".files";
    String json = internal + ".json";
    String order = internal + ".order";
    String batches = internal + ".batches";
    String safetensors = internal + ".safetensors";
    String weights = internal + ".weights";
    String npy = internal + ".npy";
    String archive = internal + ".archive";
    String checkpoint = root + ".checkpoint";
    return Stream.of(
        Arguments.of(root, List.of()),
        Arguments.of(spi, List.of(root)),
        Arguments.of(files, List.of(spi)),
        Arguments.of(json, List.of(spi)),
        Arguments.of(order, List.of(root, spi)),
        Arguments.of(batches, List.of(root, spi, order)),
        Arguments.of(safetensors, List.of(spi, files, json)),
        Arguments.of(weights, List.of(spi, safetensors, files, json)),
        Arguments.of(npy, List.of(spi)),
        Arguments.of(SOURCE, List.of()),
        Arguments.of(archive, List.of(weights, spi, files)),
        Arguments.of(internal + ".numpy", List.of(weights, archive, spi, files, npy)),
        Arguments.of(internal + ".torch", List.of(weights, archive, safetensors, spi, files, json)),
        Arguments.of(internal + ".gguf", List.of(weights, spi, files, json)),
        Arguments.of(internal + ".quantised", List.of(weights, spi, json)),
        Arguments.of(checkpoint, List.of()),
        Arguments.of(internal + ".checkpoint", List.of(checkpoint, safetensors, spi, files, json)),
        Arguments.of(root + ".images", List.of(root, spi, IMAGES)),
        Arguments.of(IMAGES, List.of(spi)),
        Arguments.of(root + ".shards", List.of(root, spi, order, files, json)),
        Arguments.of(TFRECORD, List.of(batches, files, root, spi, SOURCE, root + ".images")),
        Arguments.of(root + ".webdataset", List.of(root, spi, root + ".images")),
        Arguments.of(
            internal + ".webdataset",
            List.of(
                root + ".webdataset",
                internal + ".index",
                SOURCE,
                npy,
                safetensors,
                order,
                files,
                spi,
                root)),
        Arguments.of(EXAMPLES, List.of(TFRECORD, batches, order, root, spi)),
        Arguments.of(
            internal + ".streams", List.of(EXAMPLES, TFRECORD, batches, order, files, root, spi)),
        Arguments.of(
            internal + ".index",
            List.of(EXAMPLES, TFRECORD, safetensors, batches, files, spi, root)));
  }

  @ParameterizedTest
  @MethodSource
  void formats(String of, List<String> known) {
    List<String> allowed = new ArrayList<>(known);
    allowed.add(of);
    check(
        noClasses()
            .that()
            .resideInAPackage(of)
            .should()
            .dependOnClassesThat(
                resideInAPackage("dev.gantry.formats..")
                    .and(resideOutsideOfPackages(allowed.toArray(String[]::new)))));
  }

  /// The code that weights, samples and checkpoints share lies in packages below them: files,
  /// JSON, safetensors as a container of tensors, and the interfaces for service providers.
  @Test
  void weightsSamplesAndCheckpointsDoNotKnowEachOther() {
    String root = "dev.gantry.formats.";
    List<List<String>> kinds =
        List.of(
            List.of(
                root + "internal.weights..",
                root + "internal.numpy..",
                root + "internal.torch..",
                root + "internal.gguf..",
                root + "internal.quantised.."),
            List.of(
                root + "shards..",
                root + "tfrecord..",
                root + "internal.order..",
                root + "internal.batches..",
                root + "internal.examples..",
                root + "internal.streams..",
                root + "internal.index..",
                root + "webdataset..",
                root + "internal.webdataset.."),
            List.of(root + "checkpoint..", root + "internal.checkpoint.."));
    for (List<String> kind : kinds) {
      String[] others =
          kinds.stream()
              .filter(other -> !other.equals(kind))
              .flatMap(List::stream)
              .toArray(String[]::new);
      check(
          noClasses()
              .that()
              .resideInAnyPackage(kind.toArray(String[]::new))
              .should()
              .dependOnClassesThat()
              .resideInAnyPackage(others));
    }
  }

  @Test
  void allPackagesOfFormatsHaveSuchARule() {
    Set<String> ruled =
        formats().map(arguments -> (String) arguments.get()[0]).collect(Collectors.toSet());
    Set<String> there =
        HOUSE.stream()
            .map(JavaClass::getPackageName)
            .filter(name -> name.startsWith(Module.FORMATS.root))
            .collect(Collectors.toSet());
    assertThat(there).isEqualTo(ruled);
  }

  /// Formats do not decide where bytes go, or by which transport.
  @Test
  void formatsKnowNoGpu() {
    check(
        noClasses()
            .that()
            .resideInAPackage("dev.gantry.formats..")
            .should()
            .dependOnClassesThat(
                type(CudaContext.class).or(type(DeviceSlab.class)).or(type(PinnedSlab.class))));
  }
}
