// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// A null argument is misuse, and the call that gets it throws the error.
class NullArgumentsTest {
  static Stream<Arguments> options() {
    return Stream.of(
            LoadOptions.builder(),
            SaveRequest.builder(),
            RestoreRequest.builder(),
            WeightsWriter.builder(),
            CheckpointSaver.builder(),
            CheckpointListener.builder(),
            ShardDataset.builder(),
            TfRecordDataset.builder(),
            WebDataset.builder(),
            MixedDataset.builder())
        .flatMap(builder ->
            Arrays.stream(builder.getClass().getMethods())
                .filter(method -> method.getName().matches("(set|opt|add)[A-Z].*"))
                .filter(method -> !method.isBridge() && !Modifier.isStatic(method.getModifiers()))
                .filter(NullArgumentsTest::takesSomething)
                .map(method -> Arguments.of(method, builder)));
  }

  private static boolean takesSomething(Executable called) {
    return Arrays.stream(called.getParameters())
        .anyMatch(parameter ->
            !parameter.getType().isPrimitive()
                && !parameter.getAnnotatedType().isAnnotationPresent(Nullable.class));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("options")
  void anOptionOfNothingIsNamed(Method option, Object builder) {
    assertThatThrownBy(() -> call(option, builder))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining(option.getName());
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("makers")
  void whatIsMadeOfNothingIsMisuse(Executable maker) {
    assertThatThrownBy(() -> call(maker, null)).isInstanceOf(MisuseException.class);
  }

  private static void call(Executable called, @Nullable Object of) throws Throwable {
    Object[] nothing =
        Arrays.stream(called.getParameterTypes()).map(NullArgumentsTest::zero).toArray();
    try {
      Object _ =
          called instanceof Constructor<?> constructor
              ? constructor.newInstance(nothing)
              : ((Method) called).invoke(of, nothing);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /// Types that programs do not make: results, and exceptions of stores.
  private static final Pattern RESULTS =
      Pattern.compile(
          ".*(Exception|IncompleteRead|Statistics|LoadReport|RestoredTraining|TensorInfo|Saved)|.*\\.(micrometer|Metrics|TransferReport|Failure).*");

  /// Returns the static factories and constructors of the recorded public API.
  static Stream<Arguments> makers() throws IOException {
    Path recorded = Path.of("..", "docs", "public-api.txt");
    assumeTrue(Files.exists(recorded), "the GPU bundle has no docs");
    List<String> api = Files.readAllLines(recorded);
    return api.subList(0, api.indexOf("# Models: 13 types")).stream()
        .filter(line -> line.matches("dev\\.gantry\\.(core|formats|djl)\\..*"))
        .map(line -> line.substring(0, line.indexOf(' ')))
        .filter(name -> !RESULTS.matcher(name).matches())
        .map(NullArgumentsTest::type)
        .filter(type -> !type.isEnum())
        .flatMap(type ->
            Stream.<Executable>concat(
                Stream.of(type.getConstructors()),
                Stream.of(type.getDeclaredMethods())
                    .filter(method -> Modifier.isStatic(method.getModifiers()))
                    .filter(method -> Modifier.isPublic(method.getModifiers()))))
        .filter(NullArgumentsTest::takesSomething)
        .map(Arguments::of);
  }

  private static Class<?> type(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException e) {
      throw new AssertionError(e);
    }
  }

  private static @Nullable Object zero(Class<?> type) {
    if (type == boolean.class) {
      return false;
    } else if (type == int.class) {
      return 1;
    } else if (type == long.class) {
      return 1L;
    } else if (type == float.class) {
      return 1f;
    }
    return type == double.class ? 1d : null;
  }

  @Test
  void aCallWithNothingIsNamed() {
    assertMisuse("path", () -> Weights.open((Path) null));
    assertMisuse("location", () -> Weights.open((String) null));
    assertMisuse("folder", () -> Checkpoints.at((Path) null).openLatest());
    assertMisuse("folder", () -> Checkpoints.at((String) null).openLatest());
    assertMisuse("tensorByParameter", () -> ParameterNames.of(null));
    assertMisuse("arrays", () -> ArraySources.of((Map<String, NDArray>) null));
    assertMisuse("an array's name", () -> ArraySources.of(Collections.singletonMap(null, null)));
    Path file = Path.of(System.getProperty("java.io.tmpdir"));
    assertMisuse("session", () -> Weights.open(file, null));
    assertMisuse("names", () -> TensorSelection.names(null));
    assertMisuse("prefix", () -> TensorSelection.prefix(null));
    assertMisuse("predicate", () -> TensorSelection.matching(null));
    assertMisuse("name", () -> Device.parse(null));
    assertMisuse("settings", () -> Session.open(null).close());
  }

  @Test
  void aWriterOfNothingIsNamed() {
    assertMisuse(
        "folder", () -> ShardWriter.create(null, List.of(), ShardOptions.defaults()).close());
    assertMisuse("file", () -> TfRecordWriter.create(null, Compression.NONE).close());
    assertMisuse("folder", () -> TfRecordShards.create(null, "train", 2, Compression.NONE).close());
    assertMisuse("path", () -> ShardSet.open((Path) null));
    assertMisuse("session", () -> ShardSet.open(null, Location.of("shards")));
    assertMisuse("name of the field", () -> new Field(null, DType.U8, TensorShape.of()));
  }

  private static void assertMisuse(String argument, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(MisuseException.class)
        .hasMessage(argument + " must be given (was null)");
  }
}
