// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A hub on the loopback with the API that Python's `huggingface_hub` uses, and a second host that
/// serves the bytes of large files. The repositories are in memory.
public final class HubServer implements AutoCloseable {
  /// A request that the hub or its second host received.
  ///
  /// @param large whether the host of large files received the request
  /// @param token the value of the header `Authorization`; empty without the header
  /// @param bytes how many bytes of a file the request asks for
  public record Request(String method, boolean large, String path, String token, long bytes) {}

  /// A refusal with a status and the hub's own error code.
  public record Refusal(int status, String code) {}

  private static final Pattern FILE =
      Pattern.compile("/((?:datasets/|spaces/)?[^/]+/[^/]+)/resolve/([^/]+)/(.+)");
  private static final Pattern API =
      Pattern.compile("/api/(models|datasets|spaces)/([^/]+/[^/]+)/(revision|tree)/([^/?]+)");
  private static final Pattern RANGE = Pattern.compile("bytes=(\\d+)-(\\d+)");
  private static final int PAGE = 2;

  static {
    System.setProperty("sun.net.httpserver.nodelay", "true");
  }

  private final HttpServer hub = server();
  private final HttpServer host = server();
  private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
  private final int largeBytes;
  private final Map<String, SortedMap<String, byte[]>> repositories = new ConcurrentHashMap<>();
  private final Map<String, String> commits = new ConcurrentHashMap<>();
  private final List<Request> requests = new CopyOnWriteArrayList<>();
  private volatile boolean damaged;
  private volatile boolean silent;
  private volatile Function<Request, Optional<Refusal>> refusals = _ -> Optional.empty();

  /// Returns the hub that all sessions of this process use, with an empty cache folder of its own.
  /// It lasts as long as the process.
  public static HubServer ofProcess() {
    return OfProcess.SERVER;
  }

  /// Holds the hub of the process, which is made at the first use.
  private static final class OfProcess {
    static final HubServer SERVER = new HubServer(5000);

    static {
      try {
        Path cache = Files.createTempDirectory(Path.of("target").toAbsolutePath(), "hub");
        System.setProperty("HF_HUB_CACHE", cache.toString());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      System.setProperty("HF_ENDPOINT", SERVER.endpoint());
    }
  }

  /// Adds the files of a folder and of its subfolders to the branch `main`.
  public void put(String repository, Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        put(repository, folder.relativize(file).toString(), Files.readAllBytes(file));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// @param largeBytes the size from which files are on the host of large files
  public HubServer(int largeBytes) {
    this.largeBytes = largeBytes;
    for (HttpServer each : List.of(hub, host)) {
      each.setExecutor(threads);
      each.createContext("/", exchange -> handle(exchange, each.equals(host)));
      each.start();
    }
  }

  private static HttpServer server() {
    try {
      return HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the address for `HF_ENDPOINT`.
  public String endpoint() {
    return "http://127.0.0.1:" + hub.getAddress().getPort();
  }

  /// Adds a file to the branch `main`, which gets a new commit.
  ///
  /// @param repository the owner and the name, behind `datasets/` or `spaces/` for a dataset or a
  ///     space
  public void put(String repository, String path, byte[] bytes) {
    SortedMap<String, byte[]> files =
        new TreeMap<>(repositories.getOrDefault(repository, new TreeMap<>()));
    files.put(path, bytes.clone());
    repositories.put(repository, files);
    String all =
        files.entrySet().stream()
            .map(file -> file.getKey() + " " + git(file.getValue()))
            .collect(Collectors.joining("\n"));
    commits.put(repository, hash("SHA-1", all.getBytes(StandardCharsets.UTF_8)));
  }

  /// Returns the commit of a repository's branch `main`.
  public String commit(String repository) {
    return Objects.requireNonNull(commits.get(repository));
  }

  /// Sets the commit of a repository's branch `main`.
  public void commit(String repository, String commit) {
    commits.put(repository, commit);
  }

  /// Omits the version of large files from now on.
  public void stateNoVersions() {
    silent = true;
  }

  /// Sends bytes that do not match the ETag from now on.
  public void damage() {
    damaged = true;
  }

  /// Refuses the requests that `chosen` gives a refusal for, from now on.
  public void refuse(Function<Request, Optional<Refusal>> chosen) {
    refusals = chosen;
  }

  /// Returns the requests since the last call of this method.
  public List<Request> takeRequests() {
    List<Request> taken = List.copyOf(requests);
    requests.clear();
    return taken;
  }

  private void handle(HttpExchange exchange, boolean large) throws IOException {
    try (exchange) {
      String path = exchange.getRequestURI().getRawPath();
      Matcher range = RANGE.matcher(header(exchange, "Range"));
      long bytes =
          range.matches() ? Long.parseLong(range.group(2)) - Long.parseLong(range.group(1)) + 1 : 0;
      Request request =
          new Request(
              exchange.getRequestMethod(), large, path, header(exchange, "Authorization"), bytes);
      requests.add(request);
      Optional<Refusal> refusal = refusals.apply(request);
      if (refusal.isPresent()) {
        refuse(exchange, refusal.get());
        return;
      }
      Matcher api = API.matcher(path);
      Matcher file = FILE.matcher(path);
      if (large) {
        sendLarge(exchange, path.substring(1));
      } else if (api.matches()) {
        answer(exchange, api);
      } else if (file.matches()) {
        send(exchange, file.group(1), file.group(2), exchange.getRequestURI().getPath());
      } else {
        refuse(exchange, new Refusal(404, ""));
      }
    }
  }

  private static String header(HttpExchange exchange, String name) {
    return Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst(name), "");
  }

  private static void refuse(HttpExchange exchange, Refusal refusal) throws IOException {
    exchange.getResponseHeaders().set("X-Error-Code", refusal.code());
    exchange.sendResponseHeaders(refusal.status(), -1);
  }

  /// Returns the files of a repository's revision. If there are none, answers with an error and
  /// returns null.
  private @Nullable SortedMap<String, byte[]> files(
      HttpExchange exchange, String repository, String revision) throws IOException {
    SortedMap<String, byte[]> files = repositories.get(repository);
    if (files == null) {
      refuse(exchange, new Refusal(401, "RepoNotFound"));
      return null;
    }
    if (!List.of("main", commit(repository)).contains(revision)) {
      refuse(exchange, new Refusal(404, "RevisionNotFound"));
      return null;
    }
    return files;
  }

  private void answer(HttpExchange exchange, Matcher api) throws IOException {
    String repository = (api.group(1).equals("models") ? "" : api.group(1) + "/") + api.group(2);
    SortedMap<String, byte[]> files = files(exchange, repository, api.group(4));
    if (files == null) {
      return;
    }
    if (api.group(3).equals("revision")) {
      json(exchange, "{\"id\": \"x\", \"tags\": [{}], \"sha\": \"" + commit(repository) + "\"}");
      return;
    }
    String query = exchange.getRequestURI().getQuery();
    int from =
        query.contains("cursor=") ? Integer.parseInt(query.replaceFirst(".*cursor=", "")) : 0;
    List<String> entries =
        new ArrayList<>(
            List.of("{\"type\": \"directory\", \"path\": \"d\", \"size\": 0, \"oid\": \"0\"}"));
    files.forEach((path, bytes) -> entries.add(entry(path, bytes)));
    int to = Math.min(from + PAGE, entries.size());
    if (to < entries.size()) {
      exchange
          .getResponseHeaders()
          .set(
              "Link",
              "<%s%s?recursive=true&cursor=%d>; rel=\"next\""
                  .formatted(endpoint(), exchange.getRequestURI().getRawPath(), to));
    }
    json(exchange, "[" + String.join(", ", entries.subList(from, to)) + "]");
  }

  private String entry(String path, byte[] bytes) {
    String large =
        bytes.length < largeBytes
            ? ""
            : ", \"lfs\": {\"oid\": \"%s\", \"size\": %d, \"pointerSize\": 134}"
                .formatted(hash("SHA-256", bytes), bytes.length);
    return "{\"type\": \"file\", \"path\": \"%s\", \"size\": %d, \"oid\": \"%s\"%s}"
        .formatted(path, bytes.length, git(bytes), large);
  }

  private static void json(HttpExchange exchange, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, bytes.length);
    try (OutputStream body = exchange.getResponseBody()) {
      body.write(bytes);
    }
  }

  private void send(HttpExchange exchange, String repository, String revision, String decoded)
      throws IOException {
    SortedMap<String, byte[]> files = files(exchange, repository, revision);
    if (files == null) {
      return;
    }
    String path = decoded.substring(decoded.indexOf("/resolve/") + 9 + revision.length() + 1);
    exchange.getResponseHeaders().set("X-Repo-Commit", commit(repository));
    byte[] bytes = files.get(path);
    if (bytes == null) {
      refuse(exchange, new Refusal(404, "EntryNotFound"));
      return;
    }
    if (bytes.length < largeBytes) {
      exchange.getResponseHeaders().set("ETag", "\"" + git(bytes) + "\"");
      send(exchange, damaged ? new byte[bytes.length] : bytes);
      return;
    }
    String sha = hash("SHA-256", bytes);
    exchange.getResponseHeaders().set("X-Linked-Etag", "\"" + sha + "\"");
    exchange.getResponseHeaders().set("X-Linked-Size", String.valueOf(bytes.length));
    exchange
        .getResponseHeaders()
        .set("Location", "http://localhost:" + host.getAddress().getPort() + "/" + sha);
    exchange.sendResponseHeaders(302, -1);
  }

  private void sendLarge(HttpExchange exchange, String sha) throws IOException {
    Optional<byte[]> found =
        repositories.values().stream()
            .flatMap(files -> files.values().stream())
            .filter(bytes -> hash("SHA-256", bytes).equals(sha))
            .findFirst();
    if (found.isEmpty()) {
      refuse(exchange, new Refusal(404, ""));
      return;
    }
    if (!silent) {
      exchange.getResponseHeaders().set("ETag", "\"host-" + sha.substring(0, 8) + "\"");
    }
    send(exchange, found.get());
  }

  private static void send(HttpExchange exchange, byte[] bytes) throws IOException {
    Matcher range = RANGE.matcher(header(exchange, "Range"));
    boolean part = range.matches() && bytes.length > 0;
    int from = part ? Integer.parseInt(range.group(1)) : 0;
    int to = part ? Math.min(Integer.parseInt(range.group(2)) + 1, bytes.length) : bytes.length;
    if (part) {
      exchange
          .getResponseHeaders()
          .set("Content-Range", "bytes %d-%d/%d".formatted(from, to - 1, bytes.length));
    }
    if (exchange.getRequestMethod().equals("HEAD")) {
      exchange.getResponseHeaders().set("Content-Length", String.valueOf(bytes.length));
      exchange.sendResponseHeaders(200, -1);
      return;
    }
    exchange.sendResponseHeaders(part ? 206 : 200, to == from ? -1 : to - from);
    if (to > from) {
      try (OutputStream body = exchange.getResponseBody()) {
        body.write(bytes, from, to - from);
      }
    }
  }

  private static String git(byte[] bytes) {
    byte[] head = ("blob " + bytes.length + "\0").getBytes(StandardCharsets.US_ASCII);
    byte[] all = new byte[head.length + bytes.length];
    System.arraycopy(head, 0, all, 0, head.length);
    System.arraycopy(bytes, 0, all, head.length, bytes.length);
    return hash("SHA-1", all);
  }

  private static String hash(String algorithm, byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance(algorithm).digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() {
    RangeServer.stop(hub);
    RangeServer.stop(host);
    threads.shutdownNow();
  }
}
