// A data set of one's own: rows of a text file, read by worker threads and brought back in order.
// DATA has lines "x1,x2,x3,y"; a linear model learns y.
#include "example.h"

#include <fstream>
#include <sstream>

namespace {

class Table : public torch::data::datasets::Dataset<Table> {
 public:
  explicit Table(const std::string& path) {
    std::ifstream file(path);
    TORCH_CHECK(file, "cannot open ", path);
    for (std::string line; std::getline(file, line);) rows_.push_back(row_of(line));
  }
  torch::data::Example<> get(size_t index) override {
    const torch::Tensor row = torch::tensor(rows_.at(index));
    return {row.slice(0, 0, 3), row[3]};
  }
  std::optional<size_t> size() const override { return rows_.size(); }

 private:
  static std::vector<float> row_of(const std::string& line) {
    std::vector<float> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stof(cell));
    TORCH_CHECK(row.size() == 4, "a row of four numbers was expected, not '", line, "'");
    return row;
  }
  std::vector<std::vector<float>> rows_;
};

void train(const Arguments& arguments) {
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Table(arguments[0]).map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(8).workers(2).enforce_ordering(true));
  torch::nn::Linear model(3, 1);
  torch::load(model, arguments[1]);
  torch::optim::Adagrad optimizer(model->parameters(), torch::optim::AdagradOptions(0.1));
  for (int epoch = 0; epoch < std::stoi(arguments[2]); ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::mse_loss(model(batch.data).squeeze(1), batch.target);
      loss.backward();
      optimizer.step();
      print("loss", loss);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return run(argc, argv, "custom_dataset DATA START EPOCHS", 3, &train);
}
