// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.translate.TranslateException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.stream.Stream;

/// The HTTP server of the samples that serve. A request is 64 numbers, separated by commas; the answer is a class.
public final class NumberServer {
  private static final int NUMBERS = 64;

  private NumberServer() {}

  /// Computes the answer to a request.
  @FunctionalInterface
  public interface Answers {
    long answer(float[] numbers) throws TranslateException;
  }

  /// Starts the server on the loopback address, and prints its address.
  ///
  /// @param port the port; 0 for any free port
  /// @param executor runs the calls of `answers`
  public static HttpServer start(int port, Executor executor, Answers answers) throws IOException {
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
    server.setExecutor(executor);
    server.createContext("/", exchange -> answer(answers, exchange));
    server.start();
    System.out.println("serving http:/" + server.getAddress());
    return server;
  }

  private static void answer(Answers answers, HttpExchange exchange) throws IOException {
    int status = 200;
    String answer;
    try (exchange) {
      String question =
          new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      try {
        answer = answers.answer(numbers(question)) + "\n";
      } catch (TranslateException | IllegalArgumentException e) {
        status = 400;
        answer = e.getMessage() + "\n";
      }
      byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(status, bytes.length);
      exchange.getResponseBody().write(bytes);
    }
  }

  private static float[] numbers(String question) {
    double[] given =
        Stream.of(question.strip().split(",")).mapToDouble(Double::parseDouble).toArray();
    float[] numbers = new float[NUMBERS];
    for (int i = 0; i < Math.min(NUMBERS, given.length); i++) {
      numbers[i] = (float) given[i];
    }
    return numbers;
  }
}
