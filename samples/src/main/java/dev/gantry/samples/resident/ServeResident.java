// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.resident;

import ai.djl.ModelException;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.TransferException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/// A server that starts on resident weights, or on the files if no server of resident weights listens.
///
/// `FOLDER` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`, and `LOCATION` names what `gantry serve-weights FOLDER` prints.
/// `PORT` may be 0 for any, and the server ends after `SECONDS`. A request is 64 numbers, separated by
/// commas; the answer is a digit.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ServeResident.java LOCATION FOLDER PORT SECONDS
/// ```
public final class ServeResident {
  /// DJL numbers a block's children; the file names its layers.
  private static final ParameterNames NAMES =
      ParameterNames.builder()
          .rule("01Linear_{kind}", "fc1.{kind}")
          .rule("03Linear_{kind}", "fc2.{kind}")
          .rule("05Linear_{kind}", "head.{kind}")
          .ignore("steps_trained")
          .build();

  private static final int PIXELS = 64;

  private ServeResident() {}

  public static void main(String[] arguments)
      throws IOException, ModelException, TranslateException, InterruptedException {
    Path folder = Path.of(arguments[1]);
    // They open, and a GPU with them, while DJL's engine starts.
    CompletableFuture<Weights> opening =
        CompletableFuture.supplyAsync(() -> open(arguments[0], folder));
    Criteria<float[], Long> criteria =
        Criteria.builder()
            .setTypes(float[].class, Long.class)
            .optModelPath(folder)
            .optEngine("PyTorch")
            .optOption("hasParameter", "false")
            .optArgument("blockFactory", factory(opening))
            .optTranslator(new Digits())
            .build();
    try (ZooModel<float[], Long> model = criteria.loadModel();
        Predictor<float[], Long> predictor = model.newPredictor()) {
      long digit = predictor.predict(new float[PIXELS]);
      System.out.println(
          "a blank image looks like " + digit + ": " + sinceStart().toMillis() + " ms");
      HttpServer server =
          HttpServer.create(
              new InetSocketAddress(
                  InetAddress.getLoopbackAddress(), Integer.parseInt(arguments[2])),
              0);
      // One thread answers all, so that one predictor will do.
      server.createContext("/", exchange -> answer(predictor, exchange));
      server.start();
      System.out.println("serving http:/" + server.getAddress());
      Thread.sleep(Duration.ofSeconds(Integer.parseInt(arguments[3])));
      server.stop(0);
    }
  }

  private static Weights open(String location, Path folder) {
    try {
      return Weights.open(location);
    } catch (TransferException | DeviceUnavailableException e) {
      System.out.println("reading " + folder + ": " + e.getMessage());
      return Weights.open(folder);
    }
  }

  /// The arrays go on when the weights are closed: the server counts this process as a reader until then.
  private static BlockFactory factory(CompletableFuture<Weights> opening) {
    return (model, _, _) -> {
      Block block = block();
      try (Weights weights = opening.join()) {
        weights.load(
            model.getNDManager(), block, NAMES, LoadOptions.defaults(), new Shape(1, PIXELS));
      }
      return block;
    };
  }

  /// The layers. Their parameters have no arrays yet.
  private static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(96).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(80).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(10).build());
  }

  private static Duration sinceStart() {
    Instant started = ProcessHandle.current().info().startInstant().orElseThrow();
    return Duration.between(started, Instant.now());
  }

  private static void answer(Predictor<float[], Long> predictor, HttpExchange exchange)
      throws IOException {
    int status = 200;
    String answer;
    try (exchange) {
      String question =
          new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      try {
        answer = predictor.predict(pixels(question)) + "\n";
      } catch (TranslateException | IllegalArgumentException e) {
        status = 400;
        answer = e.getMessage() + "\n";
      }
      byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(status, bytes.length);
      exchange.getResponseBody().write(bytes);
    }
  }

  private static float[] pixels(String question) {
    double[] numbers =
        Stream.of(question.strip().split(",")).mapToDouble(Double::parseDouble).toArray();
    float[] pixels = new float[PIXELS];
    for (int i = 0; i < Math.min(PIXELS, numbers.length); i++) {
      pixels[i] = (float) numbers[i];
    }
    return pixels;
  }

  /// From 64 pixels to a digit.
  private static final class Digits implements Translator<float[], Long> {
    @Override
    public NDList processInput(TranslatorContext context, float[] pixels) {
      return new NDList(context.getNDManager().create(pixels));
    }

    @Override
    public Long processOutput(TranslatorContext context, NDList logits) {
      return logits.singletonOrThrow().argMax().getLong();
    }

    @Override
    public Batchifier getBatchifier() {
      return Batchifier.STACK;
    }
  }
}
