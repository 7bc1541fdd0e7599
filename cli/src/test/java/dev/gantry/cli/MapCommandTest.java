// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.nn.norm.LayerNorm;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MapCommandTest {
  private static final String TRANSFORMER = MapCommandTest.class.getName() + "$Blocks#transformer";
  private static final Shape INPUT = new Shape(1, 6);

  /// The blocks that the command makes.
  public static final class Blocks {
    private Blocks() {}

    /// Makes a block of three layers, in whose parameter names DJL chooses all numbers.
    public static Block transformer() {
      SequentialBlock block = new SequentialBlock().add(Linear.builder().setUnits(4).build());
      for (int layer = 0; layer < 3; layer++) {
        SequentialBlock inner = new SequentialBlock();
        inner.add(LayerNorm.builder().build());
        inner.add(Linear.builder().setUnits(8).build());
        inner.add(Linear.builder().setUnits(4).build());
        block.add(inner);
      }
      return block.add(Linear.builder().setUnits(2).optBias(false).build());
    }

    public static Block failing() {
      throw new IllegalStateException("not today");
    }

    public static String text() {
      return "";
    }

    public Block ofAnObject() {
      return transformer();
    }
  }

  @TempDir private Path temporary;
  private Path folder;

  @BeforeEach
  void write() {
    folder = temporary.resolve("hub");
    try (NDManager manager = NDManager.newBaseManager()) {
      Map<String, NDArray> tensors = new LinkedHashMap<>();
      tensors.put("model.embed.weight", manager.randomNormal(new Shape(4, 6)));
      tensors.put("model.embed.bias", manager.randomNormal(new Shape(4)));
      for (int layer = 0; layer < 3; layer++) {
        String prefix = "model.layers." + layer + ".";
        tensors.put(prefix + "ln.weight", manager.ones(new Shape(4)));
        tensors.put(prefix + "ln.bias", manager.zeros(new Shape(4)));
        tensors.put(prefix + "mlp.up.weight", manager.randomNormal(new Shape(8, 4)));
        tensors.put(prefix + "mlp.up.bias", manager.randomNormal(new Shape(8)));
        tensors.put(prefix + "mlp.down.weight", manager.randomNormal(new Shape(4, 8)));
        tensors.put(prefix + "mlp.down.bias", manager.randomNormal(new Shape(4)));
        tensors.put(prefix + "mask", manager.ones(new Shape(1, 1, 7)));
      }
      tensors.put("head.weight", manager.randomNormal(new Shape(2, 4)));
      WeightsWriter.builder().setFolder(folder).build().write(tensors);
    }
  }

  private CommandLineRun map(Object... more) {
    Object[] arguments = new Object[more.length + 4];
    System.arraycopy(new Object[] {"map", folder, "--block", TRANSFORMER}, 0, arguments, 0, 4);
    System.arraycopy(more, 0, arguments, 4, more.length);
    return CommandLineRun.of(arguments);
  }

  @Test
  void pastedRulesCompileAndLoad() throws Exception {
    CommandLineRun run = map("--input", "1,6", "--json");
    assertThat(run.exitCode()).as(run.err()).isZero();
    Map<?, ?> document = (Map<?, ?>) run.json();
    List<String> lines = ((List<?>) document.get("rules")).stream().map(Object::toString).toList();
    assertThat(lines).hasSizeLessThan(16).anyMatch(line -> line.contains("{i-"));
    assertThat(((Map<?, ?>) document.get("parameters")).values())
        .hasSize(21)
        .allMatch(parameter -> ((Map<?, ?>) parameter).containsKey("tensor"));
    assertThat(((Map<?, ?>) document.get("unused"))).hasSize(3);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(folder)) {
      Block block = Blocks.transformer();
      LoadReport report =
          weights.load(manager, block, compiled(lines), LoadOptions.defaults(), INPUT);
      assertThat(report.missing()).isEmpty();
      assertThat(report.unexpected()).isEmpty();
      NDList all = weights.load(manager);
      report
          .loaded()
          .forEach((parameter, tensor) ->
              assertThat(block.getParameters().get(parameter).getArray().toFloatArray())
                  .isEqualTo(all.get(tensor).toFloatArray()));
    }
  }

  /// Compiles lines of Java, and returns the rules that they make.
  private ParameterNames compiled(List<String> lines) throws Exception {
    String source =
        "import dev.gantry.djl.ParameterNames; import dev.gantry.formats.TensorTransform;\n"
            + "public class Pasted { public static ParameterNames names() {\n"
            + String.join("\n", lines)
            + "\nreturn names; } }";
    JavaFileObject file =
        new SimpleJavaFileObject(URI.create("string:///Pasted.java"), JavaFileObject.Kind.SOURCE) {
          @Override
          public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return source;
          }
        };
    assertThat(
            ToolProvider.getSystemJavaCompiler()
                .getTask(
                    null,
                    null,
                    null,
                    List.of(
                        "-proc:none",
                        "-d",
                        temporary.toString(),
                        "-cp",
                        System.getProperty("java.class.path")),
                    null,
                    List.of(file))
                .call())
        .isTrue();
    try (URLClassLoader loader = new URLClassLoader(new URL[] {temporary.toUri().toURL()})) {
      return (ParameterNames) loader.loadClass("Pasted").getMethod("names").invoke(null);
    }
  }

  @Test
  void forPeopleThePairsAndTheRules() {
    CommandLineRun run = map("--input", "1,6");
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.out())
        .startsWith(
            "21 parameters have a tensor, 0 have several candidates, 0 have none; 3 tensors")
        .contains("3 layers", "no parameter", "ParameterNames.builder()")
        .contains(".ignore(\"model.layers.{i}.mask\")");
  }

  @Test
  void withoutAnInputShapesAreUnknown() {
    CommandLineRun run = map();
    assertThat(run.exitCode()).as(run.err()).isZero();
    assertThat(run.out()).contains("unknown");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "no.such.Thing|no class no.such.Thing",
        "java.lang.String|must be an ai.djl.nn.Block",
        "java.lang.Integer|public constructor without arguments",
        "SELF$Blocks#nothing|public static method 'nothing' without arguments",
        "SELF$Blocks#failing|not today",
        "SELF$Blocks#text|must be an ai.djl.nn.Block",
        "SELF$Blocks#ofAnObject|must be static",
        "ai.djl.nn.Block|public constructor without arguments"
      })
  void aBlockThatCannotBeMade(String block, String words) {
    CommandLineRun run =
        CommandLineRun.of(
            "map", folder, "--block", block.replace("SELF", MapCommandTest.class.getName()));
    assertOneLine(run, 64);
    assertThat(run.err()).contains(words);
  }

  @Test
  void wrongShapesAndPlaces() throws IOException {
    for (String shape : List.of("1,x", "", "0", "1,-2", "1,,2")) {
      assertOneLine(map("--input", shape), 64);
    }
    assertOneLine(map("--input", "1,6", "--input", "1,6"), 64);
    assertOneLine(map("--classpath", temporary.resolve("no.jar")), 64);
    assertOneLine(CommandLineRun.of("map", folder), 64);
    assertOneLine(
        CommandLineRun.of("map", temporary.resolve("missing"), "--block", TRANSFORMER), 66);
    Path damaged = Files.write(temporary.resolve("x.safetensors"), new byte[] {1, 2, 3});
    assertOneLine(CommandLineRun.of("map", damaged, "--block", TRANSFORMER), 65);
  }

  private static void assertOneLine(CommandLineRun run, int exitCode) {
    assertThat(run.exitCode()).as(run.err()).isEqualTo(exitCode);
    assertThat(run.out()).isEmpty();
    assertThat(run.err().lines()).hasSize(1);
  }
}
